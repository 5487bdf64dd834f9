// The form of an HTTP tool: its arguments as rows, made from the placeholders of the request, and what the server
// says of the form while it is filled in. Without this file the arguments are a JSON Schema.
(() => {
  const builder = document.querySelector("[data-builder]");
  if (!builder) return;
  const PAUSE_MS = 400;
  const PLAIN = /^[\w$@-]+$/;
  const PLACEHOLDER = /(?<!\{)\{arguments\.(?:([\w$@-]+)|"([^"{}]+)")(?:\.[^{}]*)?\}/g;
  const form = builder.closest("form");
  const mode = builder.querySelector("[name=arguments_as]");
  const toggle = builder.querySelector("[data-switch]");
  const why = builder.querySelector("[data-why]");
  const schema = builder.querySelector("[name=input_schema]");
  const box = builder.querySelector("[data-rows=arguments]");
  const CONTROLS = ":is(input, select, textarea)";

  // The arguments: rows, and the placeholders that use them.
  const rows = () => [...box.querySelectorAll("[data-list] > [data-row]")];
  const control = (row, field) => row.querySelector(`[data-field="${field}"] ${CONTROLS}`);
  const nameOf = (row) => control(row, "name").value.trim();
  const change = (work) => box.dispatchEvent(new CustomEvent("console:rows", { detail: work }));

  const texts = () => [...form.querySelectorAll("[data-uses] :is(input:not([type=hidden], [type=checkbox]), textarea)")]
    .filter((field) => !field.closest("[data-when][hidden]"));
  const used = () => [...new Set(texts().flatMap((field) => [...field.value.matchAll(PLACEHOLDER)].map((at) => at[1] || at[2])))];

  const write = (row, name) => {
    control(row, "name").value = name;
    row.dataset.name = name;
  };

  // A placeholder makes its row. A row that was made so, and not edited since, goes with its placeholder.
  const follow = () => {
    if (mode.value !== "rows") return;
    const names = used();
    const present = rows().map(nameOf);
    const fresh = names.filter((name) => !present.includes(name));
    const stale = rows().filter((row) => "made" in row.dataset && !names.includes(nameOf(row)));
    if (!fresh.length && !stale.length) return;
    change((insert, say) => {
      fresh.forEach((name) => {
        const row = stale.shift() || insert();
        row.dataset.made = "";
        write(row, name);
        say(`Argument ${name} added.`);
      });
      stale.forEach((row) => row.remove());
    });
  };

  // A new name of an argument is written into its placeholders.
  const rename = (row) => {
    const [before, after] = [row.dataset.name, nameOf(row)];
    row.dataset.name = after;
    const taken = rows().some((each) => each !== row && nameOf(each) === before);
    if (!before || !after || before === after || taken || /[{}"]/.test(after)) return;
    const step = PLAIN.test(after) ? after : `"${after}"`;
    texts().forEach((field) => {
      const text = field.value.replace(PLACEHOLDER, (whole, plain, quoted) => {
        if ((plain || quoted) !== before) return whole;
        return `{arguments.${step}${whole.slice("{arguments.".length + (plain ? plain.length : quoted.length + 2))}`;
      });
      if (text !== field.value) field.value = text;
    });
  };

  const fill = (values) => change((insert) => {
    rows().forEach((row) => row.remove());
    values.forEach((argument) => {
      const row = insert();
      Object.entries(argument).forEach(([field, value]) => {
        const input = control(row, field);
        if (input.type === "checkbox") input.checked = value; else input.value = value;
      });
      row.dataset.name = argument.name;
      row.querySelector("details").open = ["choices", "example", "default"].some((field) => argument[field]);
    });
  });

  const show = (as) => {
    mode.value = as;
    builder.querySelectorAll("[data-as]").forEach((part) => { part.hidden = part.dataset.as !== as; });
    toggle.textContent = as === "rows" ? "JSON Schema for experts" : "Back to fields";
  };

  // What the server says, beside the fields. A field that was never filled in is not complained about yet.
  const touched = new WeakSet();
  const clear = () => form.querySelectorAll("[data-part] :is(.c-error, [data-notice])").forEach((node) => {
    const field = node.closest("[data-field]");
    if (field?.querySelector(CONTROLS)) touched.add(field.querySelector(CONTROLS));
    field?.classList.remove("c-wrong");
    node.remove();
  });
  const beside = (name, sentences, style) => {
    const input = form.elements.namedItem(name);
    const field = input?.closest?.("[data-field]");
    if (!field || (style === "c-error" && !input.value && !touched.has(input))) return;
    const words = sentences.map((sentence) => {
      const line = document.createElement("p");
      line.className = style;
      line.dataset.notice = "";
      line.textContent = sentence;
      return line;
    });
    const hint = field.querySelector(".c-hint");
    if (hint) hint.before(...words); else field.append(...words);
    field.classList.toggle("c-wrong", style === "c-error");
    const more = field.closest("details");
    if (more) more.open = true;
  };
  // The request that these values make.
  const preview = form.querySelector("[data-preview]");
  const [shown, none] = ["request", "no-request"].map((name) => preview.querySelector(`[data-${name}]`));
  const draw = (request) => {
    shown.hidden = "why" in request;
    none.textContent = request.why || "";
    if (request.why) return;
    const headers = request.headers.map(([name, value]) => `${name}: ${value}`);
    shown.textContent = [`${request.method} ${request.url}`, ...headers, ...(request.body ? ["", request.body] : [])].join("\n");
  };

  const say = ({ problems, notices, request }) => {
    clear();
    Object.entries(problems).forEach(([name, sentences]) => beside(name, sentences, "c-error"));
    Object.entries(notices).forEach(([name, sentences]) => beside(name, sentences, "c-hint c-warned"));
    why.textContent = (problems[""] || []).join(" ");
    draw(request);
  };

  let asking = new AbortController();
  const ask = async () => {
    asking.abort();
    asking = new AbortController();
    const fields = [...new FormData(form)].filter(([, value]) => typeof value === "string");
    const reply = await fetch(builder.dataset.check, {
      method: "POST", body: new URLSearchParams(fields), signal: asking.signal, redirect: "error",
    });
    if (!reply.ok) throw new Error(`${reply.status}`);
    return reply.json();
  };
  const check = () => ask().then((reply) => { say(reply); return reply; }, (error) => {
    if (error.name === "AbortError") return null;
    clear();
    why.textContent = "The form cannot be checked now. It is checked when it is saved.";
    return null;
  });

  let timer = 0;
  const later = () => { clearTimeout(timer); timer = setTimeout(check, PAUSE_MS); };

  toggle.addEventListener("click", async () => {
    clearTimeout(timer);
    const reply = await check();
    if (!reply) return;
    const { arguments: read } = reply;
    if (read.why) { why.textContent = read.why; return; }
    if (read.schema) schema.value = read.schema;
    else {
      fill(read.rows);
      form.elements.further_arguments.checked = read.further_arguments;
    }
    show(read.schema ? "schema" : "rows");
    (read.schema ? schema : toggle).focus();
    follow();
    later();
  });

  form.addEventListener("input", (event) => {
    touched.add(event.target);
    const row = event.target.closest("[data-rows=arguments] [data-row]");
    if (row) delete row.dataset.made; else follow();
    later();
  });
  form.addEventListener("change", (event) => {
    const row = event.target.closest("[data-rows=arguments] [data-row]");
    if (row && event.target === control(row, "name")) rename(row);
    else if (!row) follow();
    later();
  });
  form.addEventListener("click", (event) => { if (event.target.closest("[data-drop], [data-move]")) later(); });

  rows().forEach((row) => { row.dataset.name = nameOf(row); });
  toggle.hidden = false;
  preview.hidden = form.querySelector("[data-to-preview]").hidden = false;
  show(location.hash === "#id_input_schema" ? "schema" : builder.dataset.first);
  follow();
  if (form.querySelector(".c-wrong") || form.elements.url.value) check();
})();
