// The parts of ECharts that the report draws with, as the global `echarts`.
export { connect, init } from "echarts/core";
import { use } from "echarts/core";
import { CustomChart, LineChart } from "echarts/charts";
import { DataZoomInsideComponent, GridComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

use([
  CustomChart,
  LineChart,
  DataZoomInsideComponent,
  GridComponent,
  TooltipComponent,
  CanvasRenderer,
]);
