// Lists results below the search field while typing, as a combobox with a list (ARIA 1.2). The
// arrow keys move through the list, Enter opens the selected result, Escape closes the list. Enter
// without a selection sends the form, as without script.
const pauseOfSearch = 150;
const searched = document.querySelector(".topbar .find input, form.find input[type=search]");

if (searched) {
  const list = document.createElement("ul");
  const count = document.createElement("p");
  let timer;
  let request;
  let at = -1;
  list.id = "found";
  list.className = "found";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Results");
  list.hidden = true;
  count.className = "hidden";
  count.setAttribute("role", "status");
  searched.form.append(list, count);
  searched.setAttribute("role", "combobox");
  searched.setAttribute("aria-autocomplete", "list");
  searched.setAttribute("aria-controls", list.id);
  searched.setAttribute("aria-expanded", "false");
  searched.autocomplete = "off";

  const options = () => [...list.querySelectorAll("[role=option]")];
  const select = (to) => {
    const all = options();
    at = all.length === 0 ? -1 : (to + all.length + 1) % (all.length + 1);
    if (at === all.length) {
      at = -1; // the field itself
    }
    all.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    if (at < 0) {
      searched.removeAttribute("aria-activedescendant");
      return;
    }
    searched.setAttribute("aria-activedescendant", all[at].id);
    all[at].scrollIntoView({ block: "nearest" });
  };
  const open = (option) => location.assign(option.dataset.href);
  const close = () => {
    clearTimeout(timer);
    request?.abort();
    list.hidden = true;
    searched.setAttribute("aria-expanded", "false");
    select(-1);
  };
  const show = async () => {
    request?.abort();
    request = new AbortController();
    const address = new URL(searched.form.action);
    address.searchParams.set("q", searched.value);
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html;profile=fragment" }, redirect: "error", signal: request.signal });
      if (!answer.ok) {
        return;
      }
      list.innerHTML = await answer.text();
      const found = options().length;
      list.hidden = found === 0;
      searched.setAttribute("aria-expanded", String(found > 0));
      select(-1);
      count.textContent = found === 0 ? "Nothing found" : found + (found === 1 ? " result" : " results");
    } catch {
      // A newer request has replaced this one, or the server is away; Enter still searches.
    }
  };
  searched.addEventListener("input", () => {
    clearTimeout(timer);
    if (searched.value.trim() === "") {
      close();
      return;
    }
    timer = setTimeout(show, pauseOfSearch);
  });
  searched.addEventListener("keydown", (event) => {
    if (list.hidden) {
      return;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      select(event.key === "ArrowDown" ? at + 1 : at < 0 ? options().length - 1 : at - 1);
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      open(options()[at]);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
  });
  searched.addEventListener("focusout", (event) => {
    if (!list.contains(event.relatedTarget)) {
      close();
    }
  });
  // The field keeps the focus while a result is clicked.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) {
      open(option);
    }
  });
}
