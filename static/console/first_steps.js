// The first steps of a tenant are read again until the first call has arrived.
(() => {
  const EVERY_MS = 2000;
  const place = document.getElementById("first-steps-live");
  const steps = () => place.querySelector("[data-poll]");
  const read = async () => {
    if (document.hidden) return;
    const reply = await fetch(steps().dataset.poll, { headers: { Accept: "text/html" }, redirect: "error" });
    if (!reply.ok) return;
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html").body.firstElementChild;
    // What is being used stays; what looks the same is not read out again.
    if (fresh && fresh.outerHTML !== steps().outerHTML) {
      const used = steps().contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      steps().replaceWith(fresh);
      if (used) [...place.querySelectorAll("a")].find((link) => link.getAttribute("href") === used)?.focus();
    }
  };
  const follow = async () => {
    await read().catch(() => {});
    if (steps()) setTimeout(follow, EVERY_MS);
  };
  if (place && steps()) setTimeout(follow, EVERY_MS);
})();
