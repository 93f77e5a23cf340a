// The report's chart: every sample, drawn by uPlot. What is here is what no plot library has: the keyboard, a
// sentence for the sample under the cursor, and the samples as a table.
"use strict";
(async () => {
  const root = document.getElementById("chart");
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const FADED = 0.25, ROWS = 200; // of the table at a time; a browser would not like 100,000
  const make = (tag, fields = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), fields);
    element.append(...children);
    return element;
  };

  // --- The samples ---------------------------------------------------------------------------------------
  async function unpack() {
    const packed = Uint8Array.from(atob(data.columns), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const count = bytes.length / 12;
    const unsigned = (column, k) => {
      const at = column * 4 * count + k;
      return (bytes[at] | bytes[at + count] << 8 | bytes[at + 2 * count] << 16 | bytes[at + 3 * count] << 24) >>> 0;
    };
    const signed = (column, k) => { const u = unsigned(column, k); return u & 1 ? -(u + 1) / 2 : u / 2; };
    const found = new Map();
    let k = 0;
    for (const transfer of data.transfers) {
      const n = transfer.count;
      const [start, end, middle, rate] = [0, 1, 2, 3].map(() => new Float64Array(n));
      let now = transfer.start_us; // whole microseconds: sums of them are exact
      for (let i = 0; i < n; i++, k++) {
        start[i] = now += signed(0, k);
        end[i] = now += data.interval_us + signed(1, k);
        middle[i] = (start[i] + end[i]) / 2e6;
        rate[i] = (unsigned(2, k) & 0xfffff) * 10 ** ((unsigned(2, k) >>> 20) - 6); // digits, and a power of ten
      }
      found.set(`${transfer.repetition} ${transfer.flow} ${transfer.source}`, { start, end, middle, rate });
    }
    return found;
  }
  const transfers = await unpack();
  document.documentElement.classList.add("charting"); // from here on it takes the figure's place
  const NONE = { start: [], end: [], middle: [], rate: [] };
  const flows = data.flows, shown = flows.map(() => true);
  let side = "receiver", repetition = 0, view = [0, data.end_s], focused = -1, at = null; // {flow, k}: the cursor
  const samples = (flow) => transfers.get(`${repetition} ${flow} ${side}`) || NONE;
  const marks = () => data.repetitions[repetition] || { disturbances: [], phases: [], stalls: [], saturated: [] };
  const panel = (flow) => data.panels.find((each) => each.flows.includes(flow));

  function nearest(times, time) {
    let low = 0, high = times.length - 1;
    for (let mid; low < high; times[mid] < time ? low = mid + 1 : high = mid) mid = (low + high) >> 1;
    return low > 0 && time - times[low - 1] < times[low] - time ? low - 1 : low;
  }

  // --- What is said of a sample --------------------------------------------------------------------------
  const seconds = (us) => String(us / 1e6);
  const rate = (flow, bps) => `${(bps / panel(flow).bps).toPrecision(6)} ${panel(flow).unit}`;
  const within = (spans, start, end, after = 0) => spans.some((span) => start < span[1] + after && end > span[0]);
  function remarks(flow, k) {
    const { start, end, rate } = samples(flow), [from, to] = [start[k] / 1e6, end[k] / 1e6], f = flows[flow];
    const said = [];
    const stretches = (marks().phases[flow] || []).filter((stretch) => within([stretch], from, to));
    said.push(from < f.start_s + f.warm_up_s ? "warm-up" : stretches.length ? stretches.at(-1)[2] : "quiet");
    if (f.expected && rate[k] < data.low * f.expected) said.push("low");
    // What was held up arrives in the interval after.
    if (within(marks().stalls, from, to, data.interval_us / 1e6)) said.push("the machine stood still");
    if (within(marks().saturated, from, to, data.interval_us / 1e6)) said.push("a processor was saturated");
    return said;
  }
  const ofExpected = (flow, bps) =>
    flows[flow].expected ? `${(bps / flows[flow].expected * 100).toFixed(1)} %` : "–";
  function say() {
    if (!at) return;
    const { start, end, rate: rates } = samples(at.flow), bps = rates[at.k];
    const share = flows[at.flow].expected ? `, ${ofExpected(at.flow, bps)} of expected` : "";
    part("said").textContent = `${flows[at.flow].name}, ${seconds(start[at.k])} to ${seconds(end[at.k])} s: ` +
      `${rate(at.flow, bps)}${share}; ${remarks(at.flow, at.k).join(", ")}`;
    const time = samples(at.flow).middle[at.k];
    flows.forEach((_, flow) => {
      const own = samples(flow), k = nearest(own.middle, time);
      const there = own.middle.length && Math.abs(own.middle[k] - time) <= data.interval_us / 1e6;
      values[flow].textContent = there ? rate(flow, own.rate[k]) : "";
    });
  }

  // --- Drawing -------------------------------------------------------------------------------------------
  const colour = (name) => getComputedStyle(root).getPropertyValue(name);
  function band(u, spans, fill, height) {
    for (const [start, end] of spans) {
      const from = Math.max(u.valToPos(start, "x", true), u.bbox.left);
      const to = Math.min(u.valToPos(end, "x", true), u.bbox.left + u.bbox.width);
      if (to < u.bbox.left || from > u.bbox.left + u.bbox.width) continue;
      u.ctx.fillStyle = fill;
      u.ctx.fillRect(from, u.bbox.top, Math.max(to - from, 2 * devicePixelRatio), height ?? u.bbox.height);
    }
  }
  function promises(u, each) { // below the lines, so that what is measured is seen
    const ctx = u.ctx;
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    Object.assign(ctx, { strokeStyle: colour("--muted"), lineWidth: devicePixelRatio });
    for (const flow of each.flows.filter((flow) => shown[flow])) {
      const f = flows[flow];
      ctx.globalAlpha = focused < 0 || focused === flow ? 1 : FADED;
      for (const [bps, dash] of [[f.guarantee, [1, 3]], [f.expected, [6, 4]]]) {
        if (bps === null) continue;
        const y = u.valToPos(bps / each.bps, "y", true);
        ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
        ctx.beginPath();
        ctx.moveTo(u.valToPos(f.start_s, "x", true), y);
        ctx.lineTo(u.valToPos(f.end_s, "x", true), y);
        ctx.stroke();
      }
    }
    ctx.restore();
  }
  const table = (each) => uPlot.join(each.flows.map((flow) => {
    const own = samples(flow);
    return [Array.from(own.middle), Array.from(own.rate, (bps) => bps / each.bps)];
  }));
  const top = (each, most) => // of all that is shown; nothing leaves at the top
    Math.max(most ?? 0, ...each.flows.filter((flow) => shown[flow]).map((flow) => flows[flow].guarantee / each.bps)) *
    1.06 || 1;
  const height = (index) => (index ? 160 : innerWidth < 600 ? 240 : 320);
  const width = () => Math.max(part("plots").clientWidth, 200);
  const plots = data.panels.map((each, index) => {
    const axis = { stroke: () => colour("--muted"), grid: { stroke: () => colour("--line"), width: 1 },
      ticks: { stroke: () => colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
    const last = index === data.panels.length - 1;
    return new uPlot({
      width: width(), height: height(index), legend: { show: false }, focus: { alpha: FADED },
      scales: { x: { time: false, range: () => view }, y: { range: (u, least, most) => [0, top(each, most)] } },
      axes: [
        { ...axis, size: last ? 44 : 24, label: last ? "time in s" : undefined, labelSize: 20, labelFont: axis.font },
        { ...axis, size: 54, label: each.unit, labelSize: 20, labelFont: axis.font },
      ],
      series: [{}, ...each.flows.map((flow) => ({ stroke: flows[flow].colour, width: 1.5 }))],
      cursor: {
        sync: { key: "time", setSeries: false }, y: false, drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => { zoom(0, data.end_s); return null; } },
      },
      hooks: {
        drawAxes: [(u) => {
          band(u, marks().disturbances, colour("--shade"));
          band(u, marks().saturated, colour("--saturated"), 5 * devicePixelRatio);
          band(u, marks().stalls, colour("--stall"), 10 * devicePixelRatio);
          promises(u, each);
        }],
        setCursor: [(u) => u.over.matches(":hover") && u.cursor.left >= 0 && pick(u, each)],
        setSelect: [(u) => {
          if (u.select.width < 3) return;
          zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
      },
    }, table(each), part("plots"));
  });
  const plotOf = (flow) => plots[data.panels.indexOf(panel(flow))];
  const redraw = () => plots.forEach((u, index) => u.setData(table(data.panels[index])));

  function zoom(from, to) {
    const least = 5 * data.interval_us / 1e6, wide = Math.min(Math.max(to - from, least), data.end_s);
    const start = Math.min(Math.max((from + to - wide) / 2, 0), data.end_s - wide);
    view = [start, start + wide];
    plots.forEach((u) => u.setScale("x", { min: view[0], max: view[1] }));
    part("view").textContent = `${view[0].toFixed(2)} to ${view[1].toFixed(2)} s`;
    fill();
  }
  function scale(factor) {
    const around = at ? samples(at.flow).middle[at.k] : (view[0] + view[1]) / 2;
    const share = Math.min(Math.max((around - view[0]) / (view[1] - view[0]), 0), 1);
    zoom(around - share * (view[1] - view[0]) * factor, around + (1 - share) * (view[1] - view[0]) * factor);
  }
  let visited = -1;
  function disturbance() { // one after another, with a fifth of its time on either side
    const spans = marks().disturbances;
    if (!spans.length) return;
    const [start, end] = spans[visited = (visited + 1) % spans.length];
    zoom(start - (end - start) / 5, end + (end - start) / 5);
  }

  // --- The cursor ----------------------------------------------------------------------------------------
  function focus(flow) {
    focused = flow;
    plots.forEach((u, index) => {
      const place = data.panels[index].flows.indexOf(flow);
      u.setSeries(place < 0 ? null : place + 1, { focus: place >= 0 }, false);
    });
  }
  function pick(u, each) { // the line that is nearest to the mouse
    const time = u.posToVal(u.cursor.left, "x");
    let best = null, least = Infinity;
    for (const flow of each.flows.filter((flow) => shown[flow] && samples(flow).middle.length)) {
      const own = samples(flow), k = nearest(own.middle, time);
      const distance = Math.abs(u.valToPos(own.rate[k] / each.bps, "y") - u.cursor.top);
      if (distance < least) [least, best] = [distance, { flow, k }];
    }
    if (!best || (at && at.flow === best.flow && at.k === best.k)) return;
    if (!at || at.flow !== best.flow) focus(best.flow);
    at = best;
    say();
  }
  function go(flow, k) {
    const own = samples(flow);
    if (!own.middle.length) return;
    at = { flow, k: Math.min(Math.max(k, 0), own.middle.length - 1) };
    const time = own.middle[at.k], wide = view[1] - view[0], u = plotOf(flow);
    if (time < view[0] || time > view[1]) zoom(time - wide / 2, time + wide / 2);
    focus(flow);
    u.setCursor({ left: u.valToPos(time, "x"), top: u.valToPos(own.rate[at.k] / panel(flow).bps, "y") });
    say();
  }
  function step(by) { // to another flow, at the same time
    const there = flows.map((_, flow) => flow).filter((flow) => shown[flow] && samples(flow).middle.length);
    if (!there.length) return;
    const time = at ? samples(at.flow).middle[at.k] : view[0], place = at ? there.indexOf(at.flow) : -1;
    const next = place < 0 ? there[0] : there[(place + by + there.length) % there.length];
    go(next, nearest(samples(next).middle, time));
  }
  const along = (by) => (at && shown[at.flow] ? go(at.flow, at.k + by) : step(0));
  const edge = (end) => { if (!at) step(0); if (at) go(at.flow, nearest(samples(at.flow).middle, view[end])); };
  const KEYS = {
    ArrowLeft: (e) => along(e.shiftKey ? -10 : -1), ArrowRight: (e) => along(e.shiftKey ? 10 : 1),
    PageUp: () => along(-100), PageDown: () => along(100), Home: () => edge(0), End: () => edge(1),
    ArrowUp: () => step(-1), ArrowDown: () => step(1), "+": () => scale(0.5), "=": () => scale(0.5),
    "-": () => scale(2), 0: () => zoom(0, data.end_s), d: disturbance,
  };
  part("plots").addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(event);
  });
  part("plots").addEventListener("focus", () => at || step(0));
  part("plots").addEventListener("mouseleave", () => focus(-1));

  // --- What can be chosen --------------------------------------------------------------------------------
  const values = flows.map(() => make("output", { ariaLive: "off" }));
  const boxes = flows.map((flow, index) => {
    const box = make("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => show(index, box.checked));
    const swatch = make("span", { className: "swatch" });
    swatch.style.background = flow.colour;
    part("flows").append(make("label", {}, box, swatch, make("span", { textContent: flow.name }), values[index]));
    return box;
  });
  function show(flow, on) {
    boxes[flow].checked = shown[flow] = on;
    plotOf(flow).setSeries(panel(flow).flows.indexOf(flow) + 1, { show: on }, false);
    plotOf(flow).redraw(true, true);
    fill();
  }
  const choose = () => { at = null; focus(-1); redraw(); zoom(...view); part("said").textContent = ""; };
  const act = (name, act) => part(name).addEventListener("click", act);
  root.querySelectorAll("[name=side]").forEach((radio) =>
    radio.addEventListener("change", () => { side = radio.value; choose(); }));
  part("repetition").addEventListener("change", (event) => { repetition = Number(event.target.value); choose(); });
  act("in", () => scale(0.5));
  act("out", () => scale(2));
  act("whole", () => zoom(0, data.end_s));
  act("disturbance", disturbance);
  for (const name of ["every", "none"]) act(name, () => flows.forEach((_, flow) => show(flow, name === "every")));

  // --- The samples as a table, on demand -----------------------------------------------------------------
  let first = 0;
  function fill(from = 0) {
    const details = part("samples");
    if (!details.open) return;
    const rows = [];
    flows.forEach((_, flow) => {
      const own = samples(flow);
      for (let k = 0; shown[flow] && k < own.middle.length; k++)
        if (own.middle[k] >= view[0] && own.middle[k] <= view[1]) rows.push([flow, k]);
    });
    first = Math.min(Math.max(from, 0), Math.max(rows.length - 1, 0));
    const few = rows.slice(first, first + ROWS);
    part("rows").replaceChildren(...few.map(([flow, k]) => {
      const own = samples(flow);
      const cells = [seconds(own.start[k]), seconds(own.end[k]), rate(flow, own.rate[k]),
        ofExpected(flow, own.rate[k])];
      return make("tr", {}, make("th", { scope: "row", textContent: flows[flow].name }),
        ...cells.map((textContent) => make("td", { textContent })),
        make("td", { className: "text", textContent: remarks(flow, k).join(", ") }));
    }));
    part("which").textContent = `${few.length && first + 1} to ${first + few.length} of ${rows.length}, the ${side}'s`;
  }
  part("samples").addEventListener("toggle", () => fill());
  act("earlier", () => fill(first - ROWS));
  act("later", () => fill(first + ROWS));

  new ResizeObserver(() => plots.forEach((u, index) => u.setSize({ width: width(), height: height(index) })))
    .observe(part("plots"));
  matchMedia("(prefers-color-scheme: dark)").onchange = () => plots.forEach((u) => u.redraw(false, true));
  zoom(0, data.end_s);
  root.dataset.ready = performance.now().toFixed(0);
})();
