// Changes the look without loading the page again. The server keeps the choice.
for (const form of document.querySelectorAll("[data-theme-form]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const choice = event.submitter.value;
    const answer = await fetch(form.action, {
      method: "POST",
      redirect: "manual",
      body: new URLSearchParams(new FormData(form, event.submitter)),
    });
    if (answer.type !== "opaqueredirect" && !answer.ok) {
      return;
    }
    if (choice === "system") {
      delete document.documentElement.dataset.theme;
    } else {
      document.documentElement.dataset.theme = choice;
    }
    document.querySelector("meta[name=color-scheme]").content = choice === "system" ? "light dark" : choice;
    for (const button of form.querySelectorAll("button")) {
      button.toggleAttribute("aria-pressed", false);
    }
    event.submitter.setAttribute("aria-pressed", "true");
    document.dispatchEvent(new Event("dmarcd:theme"));
  });
}
