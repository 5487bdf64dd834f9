// Filters of the list of calls. The page works without this.
(() => {
  const open = () => document.querySelector("[data-pill][open]");

  // One at a time, closed by Escape or a click elsewhere, with the cursor in its field.
  document.querySelectorAll("[data-pill]").forEach((pill) => pill.addEventListener("toggle", () => {
    if (!pill.open) return;
    document.querySelectorAll("[data-pill][open]").forEach((other) => { if (other !== pill) other.open = false; });
    pill.querySelector("form :is(input:not([type=hidden]), select), li a").focus();
  }));
  document.addEventListener("click", (event) => {
    const pill = open();
    if (pill && !pill.contains(event.target)) pill.open = false;
  });
  document.addEventListener("keydown", (event) => {
    const pill = open();
    if (event.key !== "Escape" || !pill) return;
    pill.open = false;
    pill.querySelector("summary").focus();
  });

  // On a phone the filters that are not set are behind one button.
  document.querySelectorAll("[data-pills-fold]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => button.setAttribute("aria-expanded", button.ariaExpanded !== "true"));
  });

  // Dates are in the zone of the viewer, unless the link that led here names one.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  document.querySelectorAll("[data-zone]").forEach((field) => {
    if (field.value || !zone) return;
    const form = field.closest("form");
    const dates = [...form.querySelectorAll("[type=datetime-local]")];
    if (dates.some((date) => date.value)) return;
    field.value = zone;
    form.querySelector("[data-zone-name]").textContent = zone;
  });
  // What is left empty stays out of the address.
  document.addEventListener("submit", (event) => {
    if (!event.target.closest("[data-pill]")) return;
    const fields = [...event.target.querySelectorAll("[name]")];
    const dated = fields.some((field) => field.type === "datetime-local" && field.value);
    fields.forEach((field) => {
      if (!field.value || (field.dataset.zone !== undefined && !dated)) field.disabled = true;
    });
  });
  window.addEventListener("pageshow", () => {
    document.querySelectorAll("[data-pill] [disabled]").forEach((field) => { field.disabled = false; });
  });
})();
