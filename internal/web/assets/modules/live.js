// Checks what is written in a form when typing pauses: the server answers with the result, as it
// does when the form is sent.
const pauseOfTyping = 400;

for (const form of document.querySelectorAll("[data-live] form")) {
  const result = document.querySelector("[data-result]");
  let timer;
  let request;
  const show = async () => {
    request?.abort();
    request = new AbortController();
    const address = new URL(form.action);
    address.search = new URLSearchParams(new FormData(form));
    result.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html;profile=fragment" }, redirect: "error", signal: request.signal });
      if (answer.ok) {
        result.innerHTML = await answer.text();
        result.dispatchEvent(new Event("dmarcd:added", { bubbles: true }));
        history.replaceState(null, "", address);
      }
    } catch {
      // A newer request has replaced this one, or the server is away; the button still works.
      return;
    }
    result.removeAttribute("aria-busy");
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, pauseOfTyping);
  });
}
