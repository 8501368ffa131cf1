import { base, numbers } from "./palette.js";

// flowOption makes a Sankey diagram of a table whose rows are ways with an
// amount. A stop is named by its place as well: two places may share a name.
export function flowOption(figure, colours, width) {
  const stops = new Map();
  const links = new Map();
  for (const row of figure.querySelector("table").tBodies[0].rows) {
    const cells = [...row.cells];
    const amount = Number(cells.pop().querySelector("data").value);
    const way = cells.map((cell, place) => `${place} ${cell.textContent}`);
    for (const [place, stop] of way.entries()) {
      stops.set(stop, { depth: place, tone: cells[place].dataset.tone });
      if (place > 0) {
        const link = `${way[place - 1]}\n${stop}`;
        links.set(link, (links.get(link) ?? 0) + amount);
      }
    }
  }
  const senders = new Map([...figure.querySelectorAll("tbody td:first-child a")].map((link) => [`0 ${link.textContent}`, link.href]));
  // A click on a sender or on mail of it leads to the sender.
  figure.follow = ({ name, data }) => senders.get(data.source ?? name);
  const label = (stop) => stop.slice(stop.indexOf(" ") + 1);
  const narrow = width < 560;
  return {
    ...base(colours),
    tooltip: {
      ...base(colours).tooltip,
      formatter: ({ dataType, name, value, data }) =>
        dataType === "edge"
          ? `${label(data.source)} → ${label(data.target)}: ${numbers.format(value)}`
          : `${label(name)}: ${numbers.format(value)}`,
    },
    series: [{
      type: "sankey",
      left: 4,
      right: narrow ? 70 : 110,
      top: 8,
      bottom: 8,
      nodeGap: 16,
      nodeWidth: 12,
      draggable: false,
      emphasis: { focus: "adjacency" },
      label: {
        color: colours.text,
        fontSize: narrow ? 10 : 12,
        width: narrow ? 90 : 230,
        overflow: "truncate",
        formatter: ({ name }) => label(name),
      },
      lineStyle: { color: "source", opacity: 0.28, curveness: 0.5 },
      data: [...stops].map(([name, { depth, tone }]) => ({
        name,
        depth,
        itemStyle: { color: colours.tones[tone], borderWidth: 0 },
      })),
      links: [...links].map(([link, value]) => {
        const [source, target] = link.split("\n");
        return { source, target, value };
      }),
    }],
  };
}
