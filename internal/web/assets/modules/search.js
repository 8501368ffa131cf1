// Moves the focus to the search field when / is pressed outside of a field. The focus moves
// when the key is released, so that the character is not written into the field.
const field = document.querySelector(".topbar .find input");
const asksForSearch = (event) =>
  event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey &&
  !event.target.closest?.("input, textarea, select, [contenteditable]");
if (field) {
  let asked = false;
  document.addEventListener("keydown", (event) => {
    asked = asksForSearch(event);
    if (asked) {
      event.preventDefault();
    }
  });
  document.addEventListener("keyup", () => {
    if (asked) {
      asked = false;
      field.focus();
      field.select();
    }
  });
}
