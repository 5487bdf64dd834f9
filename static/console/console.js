// Small comforts; every page works without them.
(() => {
  const copied = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await copied(button.closest(".c-copy, .c-snippet").querySelector("code").textContent);
    const word = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = word; }, 2000);
  });

  // A token is shown once: going back to this page, or reloading it, leads to the list.
  const once = document.querySelector("[data-once]");
  if (once) {
    history.replaceState(null, "", once.dataset.once);
    window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  }

  // The live parts of a page are read again every few seconds, while the page is seen.
  const LIVE_MS = 3000;
  const busy = (part) => part.contains(document.activeElement) || getSelection().toString();
  const refresh = async () => {
    if (document.hidden) return true;
    const reply = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
    if (!reply.ok) return false;
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    document.querySelectorAll("[data-live]").forEach((part) => {
      const fresh = page.getElementById(part.id);
      if (fresh && !busy(part) && fresh.innerHTML !== part.innerHTML) part.replaceChildren(...fresh.childNodes);
    });
    return true;
  };
  // Where it is refused, the sign-in has ended or the page is gone: a reload says which.
  const follow = async () => { if (await refresh().catch(() => true)) setTimeout(follow, LIVE_MS); };
  if (document.querySelector("[data-live]")) setTimeout(follow, LIVE_MS);

  // Suggest what the author of the chosen function wrote.
  const authors = document.getElementById("authors");
  const chosen = document.getElementById("id_function");
  if (authors && chosen) {
    const said = JSON.parse(authors.textContent);
    const field = (name) => document.getElementById(`id_${name}`);
    let suggested = "";
    const suggest = () => {
      const own = said[chosen.value] || { name: "", title: "", description: "" };
      field("title").placeholder = own.title;
      field("description").placeholder = own.description;
      if (field("name").value === suggested) field("name").value = suggested = own.name;
    };
    if (field("name").value) suggested = null;
    chosen.addEventListener("change", suggest);
    suggest();
  }

  // Of the scopes, show those that are of use to the audience.
  const audience = document.getElementById("id_audience");
  if (audience) {
    const scopes = document.querySelectorAll("[data-field=scopes] input");
    const narrow = () => scopes.forEach((box) => {
      box.closest("div").hidden = !box.value.startsWith(`${audience.value}:`);
    });
    audience.addEventListener("change", narrow);
    narrow();
  }
})();
