// Takes files that are dropped, and shows how far their upload is.
for (const form of document.querySelectorAll("form[data-upload]")) {
  const files = form.querySelector("input[type=file]");
  const bar = form.querySelector("progress");
  const status = form.querySelector("[data-upload-status]");
  const result = document.querySelector("[data-upload-result]");

  for (const kind of ["dragenter", "dragover"]) {
    form.addEventListener(kind, (event) => {
      event.preventDefault();
      form.classList.add("over");
    });
  }
  form.addEventListener("dragleave", (event) => {
    if (!form.contains(event.relatedTarget)) {
      form.classList.remove("over");
    }
  });
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (event.dataTransfer.files.length > 0) {
      files.files = event.dataTransfer.files;
      form.requestSubmit();
    }
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // fetch cannot tell how much was sent; XMLHttpRequest can.
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "text/html;profile=fragment, text/html");
    request.upload.addEventListener("progress", (sent) => {
      bar.value = sent.lengthComputable ? sent.loaded / sent.total : 0;
      status.textContent = bar.value < 1 ? `${Math.floor(bar.value * 100)} % sent` : "Reading the reports …";
    });
    request.addEventListener("load", () => {
      bar.hidden = true;
      if (request.status === 200) {
        status.textContent = "Done.";
        form.reset();
        result.innerHTML = request.responseText;
        result.dispatchEvent(new Event("dmarcd:added", { bubbles: true }));
        return;
      }
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      status.textContent = (page.querySelector("main [role=alert]") ?? page.querySelector("main p:not(.quiet)"))?.textContent ?? "The upload was rejected.";
    });
    request.addEventListener("error", () => {
      bar.hidden = true;
      status.textContent = "The server could not be reached. Try again.";
    });
    bar.hidden = false;
    bar.value = 0;
    status.textContent = "Sending …";
    request.send(new FormData(form));
  });
}
