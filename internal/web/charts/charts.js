// Draws every figure of the page from the table in it. Only the parts of
// Apache ECharts that are used are imported, so that only they are bundled.
import { BarChart, SankeyChart } from "echarts/charts";
import { GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { daysOption } from "./days.js";
import { flowOption } from "./flow.js";
import { palette } from "./palette.js";

use([BarChart, SankeyChart, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent, CanvasRenderer]);

const options = { days: daysOption, flow: flowOption };

function draw(figure) {
  const plot = figure.querySelector(".plot");
  const option = options[figure.dataset.chart];
  if (!plot || !option) {
    return;
  }
  const chart = init(plot);
  const paint = () => chart.setOption(option(figure, palette(figure), plot.clientWidth), { notMerge: true });
  paint();
  const go = (address) => address && location.assign(address);
  if (figure.dataset.chart === "flow") {
    chart.on("click", (event) => go(figure.follow(event)));
  } else {
    // Anywhere above a day, since bars can be too small to be hit.
    const dayAt = ({ offsetX, offsetY }) =>
      chart.containPixel("grid", [offsetX, offsetY]) ? figure.follow(chart.convertFromPixel({ xAxisIndex: 0 }, offsetX)) : undefined;
    chart.getZr().on("click", (event) => go(dayAt(event)));
    chart.getZr().on("mousemove", (event) => chart.getZr().setCursorStyle(dayAt(event) ? "pointer" : "default"));
  }
  new ResizeObserver(() => {
    chart.resize();
    paint();
  }).observe(plot);
  document.addEventListener("dmarcd:theme", paint);
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "print"]) {
    matchMedia(query).addEventListener("change", paint);
  }
}

for (const figure of document.querySelectorAll("figure[data-chart]")) {
  draw(figure);
}
