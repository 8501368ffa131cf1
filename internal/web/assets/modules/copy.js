// Puts a button behind everything that is marked to be copied.
function addCopyButtons(root) {
  for (const element of root.querySelectorAll("[data-copy]")) {
    if (element.nextElementSibling?.matches("button.copy")) {
      continue;
    }
    // Where more is shown than is to be copied, the attribute has what is.
    const text = element.dataset.copy || element.textContent;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${text.slice(0, 80)}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        // Without https there is no clipboard: select it for the reader.
        getSelection().selectAllChildren(element);
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    element.after(button);
  }
}

addCopyButtons(document);
document.addEventListener("dmarcd:added", (event) => addCopyButtons(event.target));
