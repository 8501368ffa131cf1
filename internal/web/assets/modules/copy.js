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

addCopyButtons(document);
document.addEventListener("dmarcd:added", (event) => addCopyButtons(event.target));
