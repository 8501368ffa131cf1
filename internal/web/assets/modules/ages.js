// Shows moments of the last week as how long ago they are. The title keeps the date.
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const spans = [["minute", 60], ["hour", 3600], ["day", 86400]];

function showAges(root) {
  for (const element of root.querySelectorAll("time[title]")) {
    const age = (Date.now() - Date.parse(element.dateTime)) / 1000;
    if (age < 0 || age >= 7 * 86400) {
      continue;
    }
    const [unit, seconds] = spans.findLast(([, seconds]) => age >= seconds) ?? spans[0];
    element.textContent = relative.format(-Math.floor(age / seconds), unit);
  }
}

showAges(document);
document.addEventListener("dmarcd:added", (event) => showAges(event.target));
