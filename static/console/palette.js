// The search as a dialog, by Ctrl-K or its button. Without this file the button leads to its page.
(() => {
  const opener = document.querySelector("[data-search]");
  if (!opener || !window.HTMLDialogElement) return;
  const WAIT_MS = 120;
  let parts = null;

  const make = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
    node.append(...children);
    return node;
  };

  const build = () => {
    const input = make("input", {
      type: "search", name: "q", role: "combobox", "aria-expanded": "false", "aria-controls": "palette-list",
      "aria-haspopup": "listbox", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", maxlength: "100",
      "aria-label": "Search", placeholder: "Search pages, tools, calls, tokens, people",
    });
    const icon = make("span", { class: "material-symbols-outlined", "aria-hidden": "true" }, "search");
    const close = make("button", { type: "button", class: "c-palette-close", "aria-label": "Esc: close the search" }, "Esc");
    const form = make("form", { action: opener.pathname, role: "search" }, icon, input, close);
    const here = new URLSearchParams(opener.search).get("t");
    if (here) form.append(make("input", { type: "hidden", name: "t", value: here }));
    const list = make("div", { id: "palette-list", role: "listbox", "aria-label": "Results", hidden: "" });
    const said = make("p", { class: "c-palette-said", role: "status" });
    const help = make("p", { class: "c-palette-help", "aria-hidden": "true" });
    help.append(make("kbd", {}, "↑"), make("kbd", {}, "↓"), " select ", make("kbd", {}, "Enter"), " open ", make("kbd", {}, "Esc"), " close");
    const dialog = make("dialog", { class: "c-palette", "aria-label": "Search" }, form, list, said, help);
    document.body.append(dialog);
    return { dialog, form, input, list, said, here, close };
  };

  const options = () => [...parts.list.querySelectorAll("[role=option]")];

  const choose = (option) => {
    options().forEach((each) => each.setAttribute("aria-selected", String(each === option)));
    if (!option) return parts.input.removeAttribute("aria-activedescendant");
    parts.input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
    return undefined;
  };

  const chosen = () => parts.list.querySelector("[aria-selected=true]");

  const move = (by) => {
    const all = options();
    if (!all.length) return;
    const at = all.indexOf(chosen());
    choose(all[(at + by + all.length) % all.length] || all[0]);
  };

  let last = new AbortController();
  const search = async () => {
    last.abort();
    last = new AbortController();
    const query = new URLSearchParams({ part: "1", q: parts.input.value });
    if (parts.here) query.set("t", parts.here);
    const reply = await fetch(`${opener.pathname}?${query}`, { signal: last.signal, redirect: "manual" });
    // The session has ended, or the right to enter: the page says which.
    if (!reply.ok) return location.assign(opener.href);
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    parts.list.replaceChildren(...page.getElementById("found").childNodes);
    const all = options();
    const late = page.getElementById("late");
    parts.list.hidden = !all.length;
    parts.input.setAttribute("aria-expanded", String(all.length > 0));
    parts.said.textContent = late ? late.textContent : all.length ? "" : "Nothing found";
    parts.said.hidden = !parts.said.textContent;
    return choose(parts.input.value.trim() ? all[0] : null);
  };
  const searching = () => search().catch((error) => {
    if (error.name === "AbortError") return;
    parts.said.hidden = false;
    parts.said.textContent = "The server cannot be reached.";
  });

  const keys = (event) => {
    if (event.key === "Escape") {
      event.preventDefault();  // a search field would empty itself first
      parts.dialog.close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && chosen()) {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) window.open(chosen().href, "_blank", "noopener");
      else location.assign(chosen().href);
    }
  };

  const open = () => {
    if (!parts) {
      parts = build();
      let soon = 0;
      parts.input.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(searching, WAIT_MS); });
      parts.input.addEventListener("keydown", keys);
      parts.close.addEventListener("click", () => parts.dialog.close());
      parts.dialog.addEventListener("click", (event) => { if (event.target === parts.dialog) parts.dialog.close(); });
    }
    if (parts.dialog.open) return;
    parts.dialog.showModal();
    parts.input.select();
    searching();
  };

  opener.setAttribute("role", "button");
  opener.setAttribute("aria-haspopup", "dialog");
  opener.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  opener.addEventListener("keydown", (event) => { if (event.key === " ") { event.preventDefault(); open(); } });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (event.target.closest(".cm-editor")) return;  // the script editor has a meaning of its own for it
    event.preventDefault();
    open();
  });
})();
