import { amount, base, numbers } from "./palette.js";

const month = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

// narrow is the width below which the legend has two rows.
const narrow = 440;

// Marks of one bar share a line.
const sameDay = (mark) => (other) => other.xAxis === mark.xAxis;

// daysOption makes stacked bars of a table with a row for each day or week.
export function daysOption(figure, colours, width) {
  const table = figure.querySelector("table");
  const heads = [...table.querySelectorAll("thead th")].slice(1);
  const body = [...table.tBodies[0].rows];
  const rows = body.map((row) => [...row.querySelectorAll("data")].map((data) => Number(data.value)));
  // A row is a day, or a week with its first and last day.
  const spans = body.map((row) => [...row.querySelectorAll("time")].map((time) => time.dateTime));
  const days = spans.map(([first]) => first);
  // The list below the plot says what each number means.
  const marks = [...figure.querySelectorAll(".marks time")].map((time, i) => ({
    xAxis: days.findLast((day) => day <= time.dateTime),
    label: { formatter: String(i + 1) },
    text: time.nextElementSibling?.textContent ?? "",
  }));
  figure.follow = (index) => body[index]?.querySelector("th a")?.href;
  return {
    ...base(colours),
    tooltip: {
      ...base(colours).tooltip,
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (bars) => [
        body[bars[0].dataIndex].querySelector("th").textContent.trim(),
        ...bars.map(({ marker, seriesName, value }) => `${marker}${seriesName}: ${numbers.format(value)}`),
        ...marks.filter((mark) => mark.xAxis === bars[0].name).map((mark) => `${mark.label.formatter}: ${mark.text}`),
      ].join("\n"),
    },
    legend: { top: 0, right: 0, icon: "roundRect", itemWidth: 12, itemHeight: 12, textStyle: { color: colours.text } },
    grid: { left: 4, right: 8, top: marks.length > 0 || width < narrow ? 56 : 36, bottom: 4, containLabel: true },
    xAxis: {
      type: "category",
      data: days,
      axisLine: { lineStyle: { color: colours.line } },
      axisTick: { show: false },
      axisLabel: { color: colours.quiet, hideOverlap: true, formatter: (day) => month.format(new Date(day)) },
    },
    yAxis: {
      type: "value",
      minInterval: 1,
      splitLine: { lineStyle: { color: colours.line } },
      axisLabel: { color: colours.quiet, formatter: (value) => amount(value, width) },
    },
    series: heads.map((head, i) => ({
      name: head.textContent,
      type: "bar",
      stack: "all",
      barCategoryGap: width / days.length > 8 ? "20%" : "0%",
      itemStyle: { color: colours.tones[head.dataset.tone] },
      data: rows.map((row) => row[i]),
      markLine: i > 0 ? undefined : {
        symbol: "none",
        silent: true,
        lineStyle: { color: colours.text, type: "dashed" },
        label: { color: colours.text, fontWeight: 600 },
        data: marks.filter((mark, i) => marks.findIndex(sameDay(mark)) === i)
          .map((mark) => ({ xAxis: mark.xAxis, label: { formatter: marks.filter(sameDay(mark)).map((same) => same.label.formatter).join(", ") } })),
      },
    })),
  };
}
