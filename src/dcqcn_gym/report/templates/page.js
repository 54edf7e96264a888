"use strict";
// What a page does beyond being read: values under the pointer, series that hide, tables that sort,
// commands that are copied. Everything is in the page without it.

const MINUS = /\u2212/g, THIN = /[\u202f\u00a0]/g;

function numberIn(text) {
  const found = text.replace(MINUS, "-").replace(THIN, "").match(/[-+]?\d+(\.\d+)?(e[-+]?\d+)?/i);
  return found ? Number(found[0]) : NaN;
}

function sortBy(table, column, falling) {
  const key = (row) => row.cells[column].textContent.trim();
  const words = (row) => /^[^-+\u2212\d\u2013]/.test(key(row));
  const order = (a, b) => {
    const [x, y] = [numberIn(key(a)), numberIn(key(b))];
    if (words(a) && words(b)) return key(a).localeCompare(key(b), "en") * (falling ? -1 : 1);
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
    return (x - y) * (falling ? -1 : 1);
  };
  for (const body of table.tBodies) {
    const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
    body.append(...rows.sort(order));
  }
}

// light or dark: as the system has it until somebody asks for the other; remembered where that is allowed
const theme = document.querySelector(".theme"), whole = document.documentElement;
const isDark = () => (whole.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
function named() {
  theme.textContent = isDark() ? "Light" : "Dark";
  theme.setAttribute("aria-label", `Show in ${isDark() ? "light" : "dark"} colours`);
}
try { whole.dataset.theme = localStorage.getItem("dcqcn-gym-theme") || ""; } catch { /* not allowed */ }
named();
theme.hidden = false;
theme.addEventListener("click", () => {
  whole.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("dcqcn-gym-theme", whole.dataset.theme); } catch { /* not allowed */ }
  named();
});

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;  // a button needs a name
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      sortBy(table, column, falling);
    });
  });
}

// a row is shown if it has every value that is asked for; text fields look for a part of it
function filter(form) {
  const wanted = [...form.querySelectorAll("[data-key]")].filter((field) => field.value && (field.type !== "radio" || field.checked));
  const rows = [...document.getElementById(form.dataset.table).tBodies[0].rows];
  for (const row of rows)
    row.hidden = !wanted.every((field) => {
      const [has, asked] = [row.dataset[field.dataset.key], field.value];
      return field.type === "search" ? has.toLowerCase().includes(asked.toLowerCase()) : has === asked;
    });
  const left = rows.filter((row) => !row.hidden).length;
  form.querySelector("output").textContent = left < rows.length ? `${left} of ${rows.length} entries` : "";
}

for (const form of document.querySelectorAll("form.filters")) {
  form.hidden = false;
  for (const kind of ["input", "change"]) form.addEventListener(kind, () => filter(form));
  form.addEventListener("submit", (event) => event.preventDefault());
}

function show(chart, button, on) {
  button.setAttribute("aria-pressed", on);
  for (const series of chart.querySelectorAll(`.series[data-key="${button.dataset.key}"]`))
    series.classList.toggle("off", !on);
}

for (const chart of document.querySelectorAll(".chart"))
  for (const button of chart.querySelectorAll(".key")) {
    show(chart, button, button.getAttribute("aria-pressed") === "true");
    button.addEventListener("click", () => show(chart, button, button.getAttribute("aria-pressed") !== "true"));
  }

const tip = document.createElement("div");
tip.className = "tip";
tip.setAttribute("role", "status");
tip.hidden = true;
document.body.append(tip);
const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
cursor.setAttribute("class", "cursor");

function hide() {
  tip.hidden = true;
  cursor.remove();
}

function say(text, event) {
  tip.textContent = text;
  tip.hidden = false;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, room))}px`;
  tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
}

function numbers(text) {
  return text ? text.split(" ").map(Number) : [];
}

// the values of all lines at the x that is nearest to the pointer
function follow(panel, marks, event) {
  const box = panel.getBoundingClientRect();
  const [low, high] = numbers(marks.dataset.xs);
  const at = low + ((event.clientX - box.left) / box.width) * (high - low);
  const labels = panel.closest(".chart").querySelectorAll(".key");
  let nearest = null;
  const lines = [];
  for (const series of marks.querySelectorAll(".series[data-x]:not(.off)")) {
    const [xs, ys] = [numbers(series.dataset.x), numbers(series.dataset.y)];
    if (!xs.length) continue;
    let best = 0;
    xs.forEach((x, i) => { if (Math.abs(x - at) < Math.abs(xs[best] - at)) best = i; });
    if (nearest === null || Math.abs(xs[best] - at) < Math.abs(nearest - at)) nearest = xs[best];
    const label = labels.length ? labels[series.dataset.key].textContent : "";
    lines.push([xs[best], `${label} ${ys[best]}`.trim()]);
  }
  if (nearest === null) return hide();
  const place = `${(100 * (nearest - low)) / (high - low)}%`;
  for (const [name, value] of [["x1", place], ["x2", place], ["y1", "0"], ["y2", "100%"]]) cursor.setAttribute(name, value);
  panel.append(cursor);
  say([`x = ${nearest}`, ...lines.filter(([x]) => x === nearest).map(([, text]) => text)].join("\n"), event);
}

for (const panel of document.querySelectorAll(".panel")) {
  const marks = panel.querySelector(".marks");
  const over = (event) => {
    const mark = event.target.closest("[data-tip]");
    if (mark) say(mark.dataset.tip, event);
    else if ("follow" in marks.dataset) follow(panel, marks, event);
    else hide();
  };
  panel.addEventListener("pointermove", over);
  panel.addEventListener("pointerdown", over);
  panel.addEventListener("pointerleave", hide);
  panel.addEventListener("focusin", (event) => {
    const mark = event.target.querySelector("[data-tip]");
    const box = event.target.getBoundingClientRect();
    if (mark) say(mark.dataset.tip, { clientX: box.right, clientY: box.top });
  });
  panel.addEventListener("focusout", hide);
}

// a page opened as a file has no clipboard in some browsers: then the text is selected and copied
async function copy(text, from) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(from);
    document.execCommand("copy");
  }
}

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const from = button.closest(".block").querySelector("pre");
    await copy(from.textContent, from);
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  });
}
