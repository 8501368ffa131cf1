// Sends a filter when a choice is made, and leaves what is empty out of the
// address. Text is sent by Enter or the button, as without script.
for (const form of document.querySelectorAll("form.filter, form.inline")) {
  form.addEventListener("change", (event) => {
    // live.js shows the result of a live form in place.
    if (event.target.matches("select, [type=checkbox]") && !form.closest("[data-live]") && form.method === "get") {
      form.requestSubmit();
    }
  });
  form.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) {
      if (value === "") {
        event.formData.delete(name);
      }
    }
  });
  // A page that the button back brings as it was left shows what its address says.
  addEventListener("pageshow", (event) => {
    if (event.persisted) {
      form.reset();
    }
  });
}
