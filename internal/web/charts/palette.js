// The first five are the series of mail in the order in which bars stack them: yours that
// passes, yours that fails, forwarded, spoofed, unknown.
export const tones = ["good", "bad", "forwarded", "spoofed", "warning", "quiet"];

// The colours of the style sheet as they are now, light or dark. A canvas knows
// nothing of light-dark(), so that an element is asked what it comes to.
export function palette(figure) {
  const probe = document.createElement("span");
  probe.hidden = true;
  figure.append(probe);
  const colour = (name) => {
    probe.className = name.startsWith("chart-") ? "tone-probe" : "";
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    text: colour("text"),
    quiet: colour("quiet"),
    line: colour("line"),
    back: colour("back"),
    link: colour("link"),
    tones: Object.fromEntries(tones.map((tone) => [tone, colour(`chart-${tone}`)])),
  };
  probe.remove();
  return colours;
}

// What all charts share. Tooltips are drawn into the canvas: as HTML they would
// need inline styles, which the Content-Security-Policy forbids.
export function base(colours) {
  return {
    animation: false,
    textStyle: { color: colours.text, fontFamily: "system-ui, sans-serif" },
    tooltip: {
      renderMode: "richText",
      backgroundColor: colours.back,
      borderColor: colours.line,
      textStyle: { color: colours.text, fontSize: 12 },
    },
  };
}

export const numbers = new Intl.NumberFormat("en");

const shortNumbers = new Intl.NumberFormat("en", { notation: "compact" });

// amount writes a number so that it fits beside an axis.
export function amount(value, width) {
  return value >= 1e7 || (width < 480 && value >= 1e4) ? shortNumbers.format(value) : numbers.format(value);
}
