// The frame of every page: the colours, the menu, and menus that the browser itself opens (popover).
(() => {
  const keep = (name, value) => {
    try { localStorage.setItem(name, value); } catch { /* not remembered */ }
    document.dispatchEvent(new Event("console:look"));
  };
  const read = (name) => { try { return localStorage.getItem(name); } catch { return null; } };

  document.querySelectorAll("[data-themes]").forEach((group) => {
    const buttons = [...group.querySelectorAll("[data-theme]")];
    const mark = () => buttons.forEach((button) => {
      button.setAttribute("aria-pressed", button.dataset.theme === (read("theme") || "auto"));
    });
    buttons.forEach((button) => button.addEventListener("click", () => { keep("theme", button.dataset.theme); mark(); }));
    window.addEventListener("storage", mark);
    mark();
    group.hidden = false;
  });

  document.querySelectorAll("[data-fold]").forEach((button) => {
    const mark = () => button.setAttribute("aria-expanded", !document.documentElement.classList.contains("c-folded"));
    button.addEventListener("click", () => {
      keep("menu", document.documentElement.classList.contains("c-folded") ? "open" : "folded");
      mark();
    });
    mark();
    button.hidden = false;
  });

  // A menu: its first entry is focused when it opens by keyboard; arrows, Home and End move; the browser closes it.
  document.querySelectorAll("[data-menu]").forEach((menu) => {
    const opener = document.querySelector(`[popovertarget="${menu.id}"]`);
    const entries = () => [...menu.querySelectorAll("a[href], button, input")].filter((each) => each.offsetParent);
    opener.setAttribute("aria-expanded", "false");
    menu.addEventListener("toggle", (event) => {
      const open = event.newState === "open";
      opener.setAttribute("aria-expanded", open);
      if (open && !menu.contains(document.activeElement)) (entries()[0] || menu).focus();
    });
    opener.addEventListener("keydown", (event) => {
      if (!["ArrowDown", "ArrowUp"].includes(event.key)) return;
      event.preventDefault();
      menu.showPopover();
      entries().at(event.key === "ArrowDown" ? 0 : -1).focus(); // now: "toggle" comes after the next key
    });
    menu.addEventListener("keydown", (event) => {
      const all = entries();
      const at = all.indexOf(document.activeElement);
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined || (event.target.tagName === "INPUT" && ["Home", "End"].includes(event.key))) return;
      event.preventDefault();
      all[(to + all.length) % all.length].focus();
    });
  });

  // A field that narrows a list of links; Enter follows the first that is left, or searches without one.
  document.querySelectorAll("[data-filter]").forEach((field) => {
    const rows = [...document.querySelectorAll(`${field.dataset.filter} li`)];
    const left = () => rows.find((row) => !row.hidden);
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
    });
    field.form.addEventListener("submit", (event) => {
      if (!field.value.trim() || !left()) return;
      event.preventDefault();
      left().querySelector("a").click();
    });
  });

  // A page that comes back from the browser's memory has its drawer closed.
  window.addEventListener("pagehide", () => {
    document.querySelectorAll("[popover]:popover-open").forEach((each) => each.hidePopover());
  });
})();
