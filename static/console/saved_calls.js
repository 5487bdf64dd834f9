// Saved calls run one after another, each by a request of its own, and each row is replaced as soon as it has its result.
(() => {
  const run = async (form, call) => {
    const body = new FormData(form);
    body.set("call", call);
    const reply = await fetch(form.action, { method: "POST", body });
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const row = page.getElementById(`saved-${call}`);
    if (!reply.ok || !row?.hasAttribute("data-ran")) throw new Error("not run");
    document.getElementById(row.id).replaceWith(row);
    return row.querySelector(".c-bad") === null;
  };
  document.addEventListener("submit", async (event) => {
    const one = event.target.closest("[data-run-one]");
    const all = event.target.closest("[data-run-all]");
    if (!one && !all) return;
    event.preventDefault();
    const form = one || all;
    const calls = one ? [event.submitter.value] : [...document.querySelectorAll("[data-run-one] button")].map((button) => button.value);
    const progress = document.querySelector("[data-run-progress]");
    const buttons = () => document.querySelectorAll("#saved-calls button");
    let passed = 0;
    try {
      for (const [done, call] of calls.entries()) {
        buttons().forEach((button) => { button.disabled = true; });
        progress.textContent = `Running ${done + 1} of ${calls.length}…`;
        passed += await run(form, call);
      }
      progress.textContent = `${passed} of ${calls.length} passed`;
    } catch {
      progress.textContent = "Stopped: a call could not be run. Load the page again.";
    }
    buttons().forEach((button) => { button.disabled = false; });
  });
})();
