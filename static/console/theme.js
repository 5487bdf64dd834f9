// Before the page is drawn: the colours that the viewer chose, and whether the menu is folded.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const read = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const paint = () => {
    const chosen = read("theme");
    const dark = chosen === "dark" || (chosen !== "light" && system.matches);
    root.classList.toggle("dark", dark);
    root.classList.toggle("light", !dark);
    root.classList.toggle("c-folded", read("menu") === "folded");
  };
  paint();
  system.addEventListener("change", paint);
  window.addEventListener("storage", paint);  // another tab chose
  document.addEventListener("console:look", paint);
})();
