// A column of a chart that is pointed at says its numbers at once. Without this, its title does so.
(() => {
  const dress = (root) => root.querySelectorAll(".c-plot").forEach((plot) => {
    const tip = document.createElement("div");
    tip.className = "c-tip";
    tip.hidden = true;
    tip.setAttribute("aria-hidden", "true");
    plot.append(tip);
    plot.querySelectorAll(".c-plot-hit, a > .c-plot-bar").forEach((column) => {
      const title = column.querySelector("title");
      column.dataset.text = title.textContent;
      title.remove();
    });
    const area = plot.querySelector(".c-plot-area");
    area.addEventListener("pointermove", (event) => {
      const column = event.target.closest("[data-text]");
      tip.hidden = !column;
      if (!column) return;
      tip.textContent = column.dataset.text;
      const inside = plot.getBoundingClientRect();
      const beside = event.clientX - inside.left + 14;
      const fits = beside + tip.offsetWidth < inside.width;
      tip.style.left = `${fits ? beside : Math.max(0, beside - 28 - tip.offsetWidth)}px`;
      tip.style.top = `${Math.max(0, event.clientY - inside.top - tip.offsetHeight - 8)}px`;
    });
    area.addEventListener("pointerleave", () => { tip.hidden = true; });
  });
  dress(document);
  document.addEventListener("console:refreshed", (event) => dress(event.detail));
})();
