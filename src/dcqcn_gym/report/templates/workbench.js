"use strict";
// The workbench: what is ticked is compared. Ticks, filters and the sorted column stand behind the
// # of the address, so that a page that loads itself anew, or is sent on, shows the same.

addEventListener("DOMContentLoaded", () => {
  const { settings, charts, every } = JSON.parse(document.getElementById("workbench").textContent);
  const known = new Map(settings.map((one) => [one.id, one]));
  const at = (id) => document.getElementById(id);
  const all = (css) => [...document.querySelectorAll(css)];
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const DASHES = [[1, 0], [6, 3], [2, 2], [9, 2, 2, 2]], COLOURS = 8;
  const table = at("runs"), form = document.querySelector("form.filters");
  const fields = [...form.querySelectorAll("[data-key]")];
  let ticked = [];

  const make = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const digits = (value) => {
    if (value === null || value === undefined) return "–";
    return Number(value.toPrecision(3)).toString().replace("-", "\u2212");
  };

  // --- what is kept behind the # -------------------------------------------------------------
  function keep() {
    const said = new URLSearchParams();
    for (const one of ticked) said.append("tick", one.id);
    if (!ticked.length) said.append("tick", "");
    for (const field of fields) if (field.value) said.set(field.dataset.key, field.value);
    const head = table.querySelector("th[aria-sort]");
    if (head) said.set("sort", `${head.cellIndex} ${head.getAttribute("aria-sort")}`);
    if (every && !at("live").checked) said.set("live", "no");
    history.replaceState(null, "", `#${said}`);
  }

  function restore() {
    const said = new URLSearchParams(location.hash.slice(1));
    const first = settings.length ? settings[0].run : "";
    const wanted = said.has("tick")
      ? said.getAll("tick") : settings.filter((one) => one.run === first).slice(0, 4).map((one) => one.id);
    for (const box of all(".tick")) box.checked = wanted.includes(box.value);
    ticked = wanted.filter((id) => known.has(id)).map((id) => known.get(id));
    for (const field of fields) if (said.has(field.dataset.key)) field.value = said.get(field.dataset.key);
    const [column, order] = (said.get("sort") || "").split(" ");
    const button = column && table.tHead.rows[0].cells[column].querySelector("button");
    if (button) for (let n = 0; n < (order === "descending" ? 2 : 1); n++) button.click();
    if (every) at("live").checked = said.get("live") !== "no";
  }

  // --- the parts of the page -----------------------------------------------------------------
  function legends() {
    for (const list of all("ul.legend"))
      list.replaceChildren(...ticked.map((one, n) => {
        const [item, mark] = [make("li", one.label), make("span", "", { "aria-hidden": "true" })];
        mark.className = "swatch";
        mark.style.color = `var(--c${n % COLOURS})`;
        mark.innerHTML = `<svg viewBox="0 0 24 8" width="24" height="8"><path d="M0 4H24" stroke-width="3" stroke-dasharray="${DASHES[n % DASHES.length].join(" ")}"/></svg>`;
        item.prepend(mark);
        return item;
      }));
  }

  const change = (value, base) => {
    if (!base || value === null) return "";
    const percent = Math.round(100 * (value / base - 1));
    return ` (${percent > 0 ? "+" : ""}${percent}\u00a0%)`.replace("-", "\u2212");
  };

  function sizes() {
    const bodies = [], names = new Map(settings.flatMap((one) => one.sizes.map((of) => [of.size, of.name])));
    for (const [size, name] of names) {
      const having = ticked.filter((one) => one.sizes.some((of) => of.size === size));
      if (!having.length) continue;
      const body = document.createElement("tbody");
      body.append(make("tr", "", { class: "group" }));
      body.rows[0].append(make("th", name, { colspan: 6, scope: "rowgroup" }));
      for (const one of having) {
        const of = one.sizes.find((s) => s.size === size);
        const base = one.base !== one.id && known.get(one.base)?.sizes.find((s) => s.size === size);
        const row = body.insertRow();
        row.append(make("th", one.label + (one.finished_only ? " *" : ""), { scope: "row" }), make("td", of.count));
        for (const key of ["slowdown_mean", "slowdown_p99", "ms_mean", "ms_p99"])
          row.append(make("td", digits(of[key]) + (base ? change(of[key], base[key]) : "")));
      }
      bodies.push(body);
    }
    for (const body of [...at("sizes").tBodies]) body.remove();
    at("sizes").append(...bodies);
    at("finished-only").hidden = !ticked.some((one) => one.finished_only);
  }

  function values(kind) {
    return ticked.flatMap((one, n) => {
      const same = { id: one.id, label: one.label, place: n, colour: style(`--c${n % COLOURS}`), dash: DASHES[n % DASHES.length] };
      if (kind === "by_size") return one.sizes.map((of) => ({ ...of, ...same }));
      const { ms, ...columns } = one.over_time;
      return ms.map((at, i) => ({ ms: at, ...Object.fromEntries(Object.entries(columns).map(([key, of]) => [key, of[i]])), ...same }));
    });
  }

  function look() {
    const [ink, soft, grid, font] = ["--ink", "--soft", "--grid", "--font"].map(style);
    const axis = { labelColor: soft, titleColor: soft, gridColor: grid, domainColor: grid, tickColor: grid, titleFontWeight: "normal", labelFontSize: 11 };
    return { background: "transparent", font, view: { stroke: null }, axis, title: { color: ink, anchor: "start", fontSize: 13 } };
  }

  // every mark stands clear of both ends of its logarithmic axis
  function roomy(y, rows) {
    const some = rows.map((row) => row[y.field]).filter((value) => value > 0);
    const ratio = y.field.startsWith("slowdown");
    Object.assign(y.scale, { domainMin: ratio ? 1 : Math.min(...some) / 1.3, domainMax: 1.3 * Math.max(...some, ratio ? 1.2 : 0) });
  }

  // the styles of the page are for its own pictures, so these stand apart
  function inside(box) {
    if (!box.shadowRoot) box.attachShadow({ mode: "open" }).append(document.createElement("div"));
    return box.shadowRoot.firstChild;
  }

  async function draw(kind) {
    const box = at(kind), spec = structuredClone(charts[kind]);
    const columns = box.clientWidth > 700 ? 2 : 1;
    const width = Math.max(180, Math.floor(box.clientWidth / columns) - 75);
    const rows = values(kind);
    for (const one of spec.concat) {
      one.width = width;
      if (kind === "by_size") roomy(one.encoding.y, rows);
    }
    Object.assign(spec, { columns, spacing: 24, padding: 0, datasets: { [kind]: rows } });
    await vegaEmbed(inside(box), spec, { actions: false, renderer: "svg", config: look(), tooltip: { theme: isDark() ? "dark" : "light" } });
    // a screen reader is told what is drawn; its values are in the tables
    const svg = box.shadowRoot.querySelector("svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${charts[kind].concat.map((one) => one.title).join("; ")} of ${ticked.map((one) => one.label).join(", ")}`);
  }

  let drawing = Promise.resolve();
  function drawn() {
    if (!window.vegaEmbed || !ticked.length) return drawing;
    drawing = drawing.then(() => Promise.all(Object.keys(charts).map(draw)));
    return drawing;
  }

  function compare() {
    for (const row of table.tBodies[0].rows) row.dataset.ticked = ticked.some((one) => one.id === row.dataset.id) ? "yes" : "";
    const runs = new Set(ticked.map((one) => one.run)), ids = new Set(ticked.map((one) => one.id));
    for (const one of all("#answers article")) one.hidden = !runs.has(one.dataset.run);
    for (const one of all("#devices article")) one.hidden = !ids.has(one.dataset.id);
    for (const id of ["answers", "devices"]) at(id).hidden = !all(`#${id} article`).some((one) => !one.hidden);
    at("compared").hidden = !ticked.length;
    legends();
    sizes();
    filter(form);
    keep();
    return drawn();
  }

  for (const box of all(".tick"))
    box.addEventListener("change", () => {
      ticked = ticked.filter((one) => one.id !== box.value);
      if (box.checked) ticked.push(known.get(box.value));
      compare();
    });
  at("untick").addEventListener("click", () => {
    for (const box of all(".tick")) box.checked = false;
    ticked = [];
    compare();
  });
  for (const kind of ["input", "change"]) form.addEventListener(kind, keep);
  table.tHead.addEventListener("click", keep);
  document.querySelector(".theme").addEventListener("click", drawn);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawn);
  let before = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== before) drawn();
    before = innerWidth;
  });

  restore();
  const place = () => { try { return Number(sessionStorage.getItem(location.pathname)); } catch { return 0; } };
  if (every) at("live").addEventListener("change", keep);
  compare().then(() => {
    if (place()) scrollTo(0, place());
    document.body.dataset.drawn = "yes";
    if (!every) return;
    // counted from the drawn page: where drawing takes longer, it would never be seen
    setInterval(() => {
      if (!at("live").checked) return;
      try { sessionStorage.setItem(location.pathname, scrollY); } catch { /* not allowed */ }
      location.reload();
    }, every * 1000);
  });
});
