// Shows moments in the reader's zone. The server has put UTC into the title.
const momentFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function localize(root) {
  for (const element of root.querySelectorAll("time[title]")) {
    element.textContent = momentFormat.format(new Date(element.dateTime));
  }
}

localize(document);
document.addEventListener("dmarcd:added", (event) => localize(event.target));
