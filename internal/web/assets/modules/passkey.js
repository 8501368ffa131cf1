// Asks the browser for a passkey when a form with a field for one is sent.
const problems = {
  NotAllowedError: "No passkey was used: it was cancelled, took too long, or there is none for this site.",
  InvalidStateError: "This device already has a passkey for your account.",
  SecurityError: "Passkeys do not work at this address. Open the page by the host name of the installation.",
};

for (const field of document.querySelectorAll("input[data-passkey]")) {
  field.form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const options = JSON.parse(field.dataset.passkey).publicKey;
    try {
      const credential = options.user
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
      field.value = JSON.stringify(credential);
      field.form.submit();
    } catch (error) {
      const problem = field.form.querySelector(".problem") ?? document.createElement("p");
      problem.className = "problem";
      problem.role = "alert";
      problem.textContent = problems[error.name] ?? "This browser cannot use passkeys here. Use another one, or another way to sign in.";
      field.form.prepend(problem);
    }
  });
}
