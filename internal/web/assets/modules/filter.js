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
  // The page with the result begins where this one is, with the same field focused.
  form.addEventListener("submit", () => {
    if (form.method === "get") {
      const focused = form.contains(document.activeElement) ? document.activeElement.id : "";
      sessionStorage.setItem("filtered", JSON.stringify({ path: location.pathname, focused, top: scrollY }));
    }
  });
  // A page that the button back brings as it was left shows what its address says.
  addEventListener("pageshow", (event) => {
    if (event.persisted) {
      form.reset();
    }
  });
}

const filtered = JSON.parse(sessionStorage.getItem("filtered"));
sessionStorage.removeItem("filtered");
if (filtered?.path === location.pathname) {
  document.getElementById(filtered.focused)?.focus({ preventScroll: true });
  scrollTo(0, filtered.top);
}
