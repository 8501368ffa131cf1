import { base, numbers } from "./palette.js";

const month = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", timeZone: "UTC" });

// daysOption makes stacked bars of a table with a row for each day.
export function daysOption(figure, colours, width) {
  const table = figure.querySelector("table");
  const days = [...table.querySelectorAll("tbody time")].map((time) => time.dateTime);
  const heads = [...table.querySelectorAll("thead th")].slice(1);
  const rows = [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("data")].map((data) => Number(data.value)));
  // The list below the plot says what each number means.
  const marks = [...figure.querySelectorAll(".marks time")].map((time, i) => ({
    xAxis: time.dateTime,
    label: { formatter: String(i + 1) },
  }));
  return {
    ...base(colours),
    tooltip: {
      ...base(colours).tooltip,
      trigger: "axis",
      axisPointer: { type: "shadow" },
      valueFormatter: (value) => numbers.format(value),
    },
    legend: { top: 0, right: 0, icon: "roundRect", itemWidth: 12, itemHeight: 12, textStyle: { color: colours.text } },
    grid: { left: 4, right: 8, top: marks.length > 0 ? 56 : 36, bottom: 4, containLabel: true },
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
      axisLabel: { color: colours.quiet, formatter: (value) => numbers.format(value) },
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
        data: marks,
      },
    })),
  };
}
