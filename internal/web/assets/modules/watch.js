// Asks for a part of the page again until it says that it is complete.
const watchInterval = 5000;

for (const element of document.querySelectorAll("[data-watch]")) {
  const look = async () => {
    if (element.querySelector("[data-complete]")) {
      return;
    }
    if (!document.hidden) {
      try {
        const answer = await fetch(element.dataset.watch, { headers: { Accept: "text/html;profile=fragment" }, redirect: "error" });
        const text = answer.ok ? await answer.text() : "";
        if (answer.status === 401) {
          const ended = document.createElement("p");
          ended.className = "notice warning";
          ended.textContent = "You are signed out, so this page no longer updates. Reload it to sign in.";
          element.prepend(ended);
          return;
        }
        // The same text again would take away what the reader selected.
        if (text && text !== element.dataset.shown) {
          element.dataset.shown = text;
          element.innerHTML = text;
          element.dispatchEvent(new Event("dmarcd:added", { bubbles: true }));
        }
      } catch {
        // The server is away; the next look may find it.
      }
    }
    setTimeout(look, watchInterval);
  };
  setTimeout(look, watchInterval);
}
