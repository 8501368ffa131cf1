// Puts a button behind everything that is marked to be copied. Without text it is an icon.
function addCopyButtons(root) {
  for (const element of root.querySelectorAll("[data-copy]")) {
    if (element.nextElementSibling?.matches("button.copy")) {
      continue;
    }
    // Where more is shown than is to be copied, the attribute has what is.
    const text = element.dataset.copy || element.textContent;
    const button = document.createElement("button");
    const label = `Copy ${text.slice(0, 80)}`;
    const show = (word) => {
      button.textContent = word;
      button.ariaLabel = word || label;
    };
    button.type = "button";
    button.className = "copy";
    button.title = "Copy";
    show("");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        show("Copied");
      } catch {
        // Without https there is no clipboard: select it for the reader.
        getSelection().selectAllChildren(element);
        show("Selected");
      }
      setTimeout(show, 2000, "");
    });
    element.after(button);
  }
}

// Puts a button into every form that downloads a file of a record, which copies it instead.
function addFileButtons(root) {
  for (const form of root.querySelectorAll("form.recordfile:not(:has(button[type=button]))")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        const answer = await fetch(`${form.action}?${new URLSearchParams(new FormData(form))}`);
        if (!answer.ok) {
          throw new Error(answer.statusText);
        }
        await navigator.clipboard.writeText(await answer.text());
        button.textContent = "Copied";
      } catch {
        // Without https there is no clipboard, and the page of an error says more.
        form.requestSubmit();
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    form.append(button);
  }
}

for (const add of [addCopyButtons, addFileButtons]) {
  add(document);
  document.addEventListener("dmarcd:added", (event) => add(event.target));
}
