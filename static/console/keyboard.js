// Single keys on lists: j and k move, Enter opens, / goes to the filter, ? shows the keys, Esc leaves.
(() => {
  const OFF = "mcphost-keys-off";
  const off = () => localStorage.getItem(OFF) === "1";
  const main = document.getElementById("content");
  if (!main) return;

  const typing = (node) => node.closest("input:not([type=checkbox], [type=radio], [type=submit], [type=button]), textarea, select, [contenteditable=true], [contenteditable='']");
  // What a row leads to: the bold link in it, otherwise the first one that can be seen.
  const link = (row) => {
    const seen = [...row.querySelectorAll("a[href]")].filter((each) => each.offsetParent);
    return seen.find((each) => each.closest("b") || each.querySelector("b")) || seen[0];
  };
  const links = () => [...main.querySelectorAll(".c-table tbody tr, .c-waiting li, .c-hits li, [data-rows-of-links] > *")]
    .map(link).filter(Boolean);

  const move = (by) => {
    const all = links();
    if (!all.length) return false;
    const row = document.activeElement.closest("tr, li");
    const at = row ? all.indexOf(link(row)) : -1;
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1);
    all[next].focus();
    all[next].scrollIntoView({ block: "nearest" });
    return true;
  };

  // Of chips, the one that searches texts.
  const find = () => {
    const chip = (name) => main.querySelector(`[data-pill] [name=${name}]:not([type=hidden])`);
    const field = chip("words") || chip("tool") || [...main.querySelectorAll("form[method=get] :is(input:not([type=hidden]), select)")]
      .find((each) => !each.disabled);
    if (!field) {
      const search = document.querySelector("[data-search]");
      if (search) search.click();
      return Boolean(search);
    }
    const folded = field.closest("details:not([open])");
    if (folded) folded.open = true;
    field.focus();
    if (field.select) field.select();
    return true;
  };

  const dialog = document.getElementById("shortcuts");
  const box = dialog.querySelector("[data-keys-on]");
  box.checked = !off();
  box.addEventListener("change", () => localStorage.setItem(OFF, box.checked ? "0" : "1"));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  const explain = () => { dialog.showModal(); return true; };

  const leave = (event) => {
    const active = document.activeElement;
    if (!main.contains(active) || active === main) return false;
    const field = typing(active);
    if (field && !field.closest("form[method=get]")) return false;
    if (!field && !links().includes(active)) return false;
    if (event.defaultPrevented) return false;
    active.blur();
    return true;
  };

  const ACTS = { j: () => move(1), k: () => move(-1), "/": find, "?": explain };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open], :popover-open")) return;
    if (event.key === "Escape") return void leave(event);
    const act = ACTS[event.key];
    if (act && !off() && !typing(event.target) && act()) event.preventDefault();
  });

  const shortcuts = document.querySelector("[data-shortcuts]");
  if (shortcuts) shortcuts.addEventListener("click", (event) => { event.preventDefault(); explain(); });
})();
