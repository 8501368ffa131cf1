// Asks before a form does what cannot be taken back.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) {
    event.preventDefault();
  }
});
