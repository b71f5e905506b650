// The parts of ECharts that the report draws with, as the global `echarts`.
export { init, use } from "echarts/core";
import { use } from "echarts/core";
import { LineChart, CustomChart } from "echarts/charts";
import {
  DataZoomInsideComponent,
  GridComponent,
  LegendComponent,
  TooltipComponent,
} from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

use([
  LineChart,
  CustomChart,
  GridComponent,
  TooltipComponent,
  LegendComponent,
  DataZoomInsideComponent,
  CanvasRenderer,
]);
