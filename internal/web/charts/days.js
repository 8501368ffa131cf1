import { amount, base, numbers } from "./palette.js";

const month = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", timeZone: "UTC" });

// So many days are drawn as they are; of more the eye sees the weekends alone.
const mostDays = 120;

// byWeek adds up weeks, of which the first may be cut off and the last is whole.
function byWeek(days, rows) {
  const weeks = { days: [], rows: [], ends: {} };
  for (let end = days.length; end > 0; end -= 7) {
    const start = Math.max(end - 7, 0);
    weeks.days.unshift(days[start]);
    weeks.ends[days[start]] = days[end - 1];
    weeks.rows.unshift(rows.slice(start, end).reduce((sum, row) => sum.map((amount, i) => amount + row[i])));
  }
  return weeks;
}

// daysOption makes stacked bars of a table with a row for each day.
export function daysOption(figure, colours, width) {
  const table = figure.querySelector("table");
  const heads = [...table.querySelectorAll("thead th")].slice(1);
  const told = {
    days: [...table.querySelectorAll("tbody time")].map((time) => time.dateTime),
    rows: [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("data")].map((data) => Number(data.value))),
  };
  const weekly = told.days.length > mostDays;
  const { days, rows, ends } = weekly ? byWeek(told.days, told.rows) : told;
  // The list below the plot says what each number means.
  const marks = [...figure.querySelectorAll(".marks time")].map((time, i) => ({
    xAxis: days.findLast((day) => day <= time.dateTime),
    label: { formatter: String(i + 1) },
    text: time.nextElementSibling?.textContent ?? "",
  }));
  const links = new Map([...table.querySelectorAll("tbody a:has(time)")].map((link) => [link.querySelector("time").dateTime, link.href]));
  // A click on a day leads to what it is made of, on a week to that of all its days.
  figure.follow = (index) => {
    const link = links.get(days[index]);
    if (link && weekly) {
      const whole = new URL(link);
      whole.searchParams.set("to", ends[days[index]]);
      return whole.href;
    }
    return link;
  };
  return {
    ...base(colours),
    tooltip: {
      ...base(colours).tooltip,
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (bars) => [
        weekly ? `${bars[0].name} to ${ends[bars[0].name]}` : bars[0].name,
        ...bars.map(({ marker, seriesName, value }) => `${marker}${seriesName}: ${numbers.format(value)}`),
        ...marks.filter((mark) => mark.xAxis === bars[0].name).map((mark) => `${mark.label.formatter}: ${mark.text}`),
      ].join("\n"),
    },
    legend: { top: 0, right: 0, icon: "roundRect", itemWidth: 12, itemHeight: 12, textStyle: { color: colours.text } },
    grid: { left: 4, right: 8, top: marks.length > 0 || weekly ? 56 : 36, bottom: 4, containLabel: true },
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
      ...(weekly && { name: "by week", nameTextStyle: { color: colours.quiet, align: "right" } }),
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
