// Rows that are added, removed and moved; fields that matter only with others; pictures before
// they are sent. Without this file the forms have spare rows, and everything is shown.
(() => {
  const say = (box, words) => { box.querySelector("[data-said]").textContent = words; };

  const apply = (scope) => scope.querySelectorAll("[data-when]").forEach((node) => {
    const [name, values] = node.dataset.when.split(":");
    const row = node.closest("[data-row]") || node.closest("form");
    const field = row.querySelector(`[data-field="${name}"] :is(select, input)`);
    node.hidden = !values.split(",").includes(field.value);
  });

  const blank = (row) => [...row.querySelectorAll("input:not([type=hidden]), textarea")]
    .every((field) => (field.type === "checkbox" ? field.checked === field.defaultChecked : !field.value));

  const count = (box) => {
    const rows = [...box.querySelectorAll("[data-row]")];
    rows.forEach((row, at) => {
      const number = row.querySelector("[data-number]");
      if (number) number.textContent = `${box.dataset.one} ${at + 1}`;
      row.setAttribute("aria-label", `${box.dataset.one} ${at + 1}`);
      const [up, down] = ["up", "down"].map((way) => row.querySelector(`[data-move=${way}]`));
      if (up) { up.disabled = at === 0; down.disabled = at === rows.length - 1; }
    });
    return rows;
  };

  const start = (row) => {
    row.querySelectorAll("[data-scripted]").forEach((node) => { node.hidden = false; });
    row.querySelectorAll("[data-plain]").forEach((node) => { node.hidden = true; });
    apply(row);
  };

  document.querySelectorAll("[data-rows]").forEach((box) => {
    const list = box.querySelector("[data-list]");
    const template = box.querySelector("template");
    const add = box.querySelector("[data-add]");
    // A form that comes back with errors holds rows that were added before: their numbers stay theirs.
    const taken = [...box.querySelectorAll("[data-row] [name]")]
      .map((field) => Number((/-(\d+)-/.exec(field.name) || [])[1] || 0));
    let next = 1 + Math.max(999, ...taken);

    const insert = () => {
      const holder = document.createElement("template");
      holder.innerHTML = template.innerHTML.replaceAll("__n__", next++);
      const row = holder.content.querySelector("[data-row]");
      list.append(holder.content);
      start(row);
      count(box);
      return row;
    };

    box.querySelectorAll("[data-row][data-spare]").forEach((row) => { if (blank(row)) row.remove(); });
    list.querySelectorAll("[data-row]").forEach(start);
    while (list.children.length < Number(box.dataset.least || 0)) insert();
    count(box);

    // Other scripts add and remove rows, too, without moving the focus.
    box.addEventListener("console:rows", (event) => {
      event.detail(insert, (words) => say(box, words));
      count(box);
    });

    add.hidden = false;
    add.addEventListener("click", () => {
      const row = insert();
      [...row.querySelectorAll("input, select, textarea")].find((each) => each.offsetParent).focus();
      say(box, `${box.dataset.one} ${list.children.length} added.`);
    });

    list.addEventListener("click", (event) => {
      const button = event.target.closest("[data-drop], [data-move]");
      if (!button) return;
      const row = button.closest("[data-row]");
      const at = count(box).indexOf(row) + 1;
      if ("drop" in button.dataset) {
        const neighbour = row.nextElementSibling || row.previousElementSibling;
        row.remove();
        (neighbour ? neighbour.querySelector("[data-drop]") : add).focus();
        say(box, `${box.dataset.one} ${at} removed.`);
      } else {
        const up = button.dataset.move === "up";
        const other = up ? row.previousElementSibling : row.nextElementSibling;
        if (up) other.before(row); else other.after(row);
        button.focus();
        say(box, `Moved to ${at + (up ? -1 : 1)}.`);
      }
      count(box);
    });
  });

  apply(document);
  document.addEventListener("change", (event) => {
    const scope = event.target.closest("[data-row]") || event.target.closest("form");
    if (!scope) return;
    apply(scope);
    if (event.target.type === "file") picture(event.target);
  });

  const picture = (input) => {
    const shown = input.closest("[data-file]") && input.closest("[data-file]").querySelector("img");
    const [file] = input.files;
    if (!shown || !file || !/^image\/(png|jpeg|webp)$/.test(file.type)) return;
    const reader = new FileReader();
    reader.addEventListener("load", () => { shown.src = reader.result; shown.hidden = false; });
    reader.readAsDataURL(file);
  };

  // Names of arguments, to be put where the cursor was in a text.
  const names = document.querySelector("[data-names]");
  if (names) {
    let last = null;
    const list = () => [...document.querySelectorAll("[data-rows=arguments] [data-field=name] input")]
      .map((field) => field.value.trim()).filter(Boolean);
    const show = () => {
      names.replaceChildren(...list().map((name) => {
        const chip = document.createElement("button");
        chip.type = "button";
        chip.className = "c-chip";
        chip.textContent = `{${name}}`;
        chip.addEventListener("click", () => {
          const text = last && last.isConnected ? last : document.querySelector("[data-rows=messages] textarea");
          if (!text) return;
          text.setRangeText(chip.textContent, text.selectionStart, text.selectionEnd, "end");
          text.focus();
        });
        return chip;
      }));
      names.closest("[data-names-box]").hidden = !names.children.length;
    };
    document.addEventListener("input", (event) => { if (event.target.matches("[data-field=name] input")) show(); });
    document.addEventListener("click", (event) => { if (event.target.closest("[data-drop]")) show(); });
    document.addEventListener("focusin", (event) => {
      if (event.target.matches("[data-rows=messages] textarea")) last = event.target;
    });
    show();
  }
})();
