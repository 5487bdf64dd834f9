// The page of the administration API: a form for each operation, made when it is opened. The token stays in its field.
(() => {
  const token = document.querySelector("[data-token]");
  const template = document.querySelector("#request");
  let number = 0;
  token.hidden = false;
  // On a phone the operations are below the title, and folded: they are longer than the window.
  if (matchMedia("(max-width: 56rem)").matches) document.querySelector("[data-contents]").open = false;

  const field = (form, text, control, required) => {
    const box = document.createElement("div"), label = document.createElement("label");
    control.id = label.htmlFor = `request-${number += 1}`;
    control.required = required;
    box.className = "c-field";
    label.className = "c-label";
    label.textContent = text;
    box.append(label, control);
    form.querySelector("[data-inputs]").append(box);
    return control;
  };

  const build = (article) => {
    const form = template.content.cloneNode(true).querySelector("form");
    const parameters = [...article.querySelectorAll("[data-parameter]")].map(({dataset}) => {
      const input = document.createElement("input");
      input.spellcheck = false;
      input.autocomplete = "off";
      return {...dataset, input: field(form, dataset.parameter, input, "required" in dataset)};
    });
    const example = article.querySelector("[data-example]");
    const body = example && field(form, "Body", document.createElement("textarea"), false);
    if (body) {
      body.rows = 8;
      body.spellcheck = false;
      body.value = example.textContent;
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(article, form, parameters, body);
    });
    return form;
  };

  const send = async (article, form, parameters, body) => {
    const {method, path, type} = article.dataset;
    const query = new URLSearchParams(), headers = {Accept: "application/json"};
    let address = path;
    for (const {parameter, input, in: place} of parameters) {
      if (place === "path") address = address.replace(`{${parameter}}`, encodeURIComponent(input.value));
      else if (input.value && place === "query") query.set(parameter, input.value);
      else if (input.value && place === "header") headers[parameter] = input.value;
    }
    const secret = token.querySelector("input").value.trim();
    if (secret) headers.Authorization = `Bearer ${secret}`;
    if (body) headers["Content-Type"] = type;
    const answer = form.querySelector("[data-answer]");
    answer.hidden = false;
    answer.textContent = "…";
    try {
      const response = await fetch(query.size ? `${address}?${query}` : address, {method, headers, body: body?.value, credentials: "omit", cache: "no-store"});
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it has no body */ }
      const etag = response.headers.get("ETag");
      answer.textContent = [`${response.status} ${response.statusText}`, etag && `ETag: ${etag}`, shown].filter(Boolean).join("\n");
    } catch {
      answer.textContent = "The request could not be sent.";
    }
  };

  for (const article of document.querySelectorAll("[data-method]")) {
    const button = document.createElement("button"), row = document.createElement("p");
    button.type = "button";
    button.className = "c-button";
    button.textContent = "Send a request";
    button.addEventListener("click", () => {
      const form = build(article);
      row.replaceWith(form);
      form.querySelector("input, textarea, button").focus();
    });
    row.append(button);
    article.append(row);
  }
})();
