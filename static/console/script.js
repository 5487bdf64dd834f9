// The editor of a script is larger than the rest of its page, so it is loaded once the code is used: pointed at,
// focused, or shown with an error. Until then, and without this file, the code is in a text area.
(() => {
  const box = document.querySelector("[data-script-editor]");
  const USES = ["focusin", "pointerover", "touchstart"];
  const load = () => {
    USES.forEach((use) => box.removeEventListener(use, load));
    const script = document.createElement("script");
    script.src = box.dataset.editor;
    document.head.append(script);
  };
  USES.forEach((use) => box.addEventListener(use, load, { passive: true }));
  if (box.querySelector(".c-error") || box.contains(document.activeElement)) load();
})();
