// The bar over every screen. State comes from the model; clicks go back as params and messages.

const ICONS = {
  undo: '<path d="M9 7 4 12l5 5"/><path d="M4 12h10a6 6 0 0 1 0 12" transform="translate(0 -4)"/>',
  redo: '<path d="m15 7 5 5-5 5"/><path d="M20 12H10a6 6 0 0 0 0 12" transform="translate(0 -4)"/>',
  moon: '<path d="M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z"/>',
  user: '<circle cx="12" cy="8.5" r="4"/><path d="M4.5 20a7.5 7.5 0 0 1 15 0"/>',
  sun: '<circle cx="12" cy="12" r="4.2"/><path d="M12 2.5v2.5M12 19v2.5M2.5 12H5M19 12h2.5M5.3 5.3l1.8 1.8M16.9 16.9l1.8 1.8M5.3 18.7l1.8-1.8M16.9 7.1l1.8-1.8"/>',
};

const icon = (name) =>
  `<svg width="20" height="20" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${ICONS[name]}</svg>`;

const BRAND =
  '<svg width="28" height="28" viewBox="0 0 28 28" aria-hidden="true"><g fill="currentColor"><circle cx="6" cy="7" r="3"/><circle cx="6" cy="21" r="3" opacity=".55"/><circle cx="22" cy="7" r="3" opacity=".55"/><circle cx="22" cy="21" r="3"/></g><g stroke="currentColor" stroke-width="1.8" fill="none"><path d="M9 8.5 19 19.5M9 7h10M9 21h10M9 19.5 19 8.5" opacity=".7"/></g></svg>';

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A menu that opens below its button, and closes by Escape and by whatever happens beside it.
function menu(label, title, ...items) {
  const button = make("summary", { title });
  button.append(...label);
  const node = make("details", { class: "menu" }, button, make("div", { class: "items" }, ...items));
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !node.open) return;
    node.open = false;
    button.focus();
  });
  node.addEventListener("focusout", (event) => { if (event.relatedTarget && !node.contains(event.relatedTarget)) node.open = false; });
  document.addEventListener("pointerdown", (event) => { if (!event.composedPath().includes(node)) node.open = false; });
  return node;
}

// Hosts of shadow roots from the bar outwards: the bar itself, and the app around it.
function around(node, name) {
  let root = node.getRootNode();
  while (root && root.host) {
    if (root.host.classList.contains(name)) return root.host;
    root = root.host.getRootNode();
  }
  return null;
}

// Names and roles for what Panel's and Bokeh's own parts leave without: sliders, spinners, boxes, grids, tabs.
function within(node, css) {
  const label = node.getRootNode().querySelector(css);
  return label ? label.textContent.trim().replace(/:$/, "") : "";
}
function set(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}
const GIVE = {
  ".noUi-handle": (node) => set(node, "aria-label", within(node, "label, .bk-slider-title").replace(/:.*/, "")),
  "input[type=checkbox]": (node) => {
    // a box of its own has its words beside it; the first label of its root is an empty one
    const beside = node.nextElementSibling ? node.nextElementSibling.textContent.trim() : "";
    if (!node.closest("label")) set(node, "aria-label", beside || within(node, "span, label") || "choose");
  },
  ".bk-input-group": (node) => {
    const boxes = node.querySelectorAll("input[type=checkbox], input[type=radio]");
    if (boxes.length < 2) return;
    set(node, "role", "group");
    set(node, "aria-label", within(node, ":scope > label, .bk-input-group > label, label") || "choices");
  },
  ".scroll": (node) => {
    // keys must reach what is wider than its place, and need not stop at what is not
    if (node.hasAttribute("aria-label") && !node.dataset.wider) return;
    if (node.scrollWidth > node.clientWidth) {
      node.dataset.wider = "1";
      set(node, "tabindex", "0");
      set(node, "role", "group");
      set(node, "aria-label", `${headingOf(node.getRootNode().host) || "Table"}, wider than its place`);
    } else if (node.dataset.wider) {
      for (const name of ["data-wider", "tabindex", "role", "aria-label"]) node.removeAttribute(name);
    }
  },
  ".tabulator-tableholder": (node) => set(node, "role", "rowgroup"),
  // a cell that cannot be edited gives the keyboard away to nobody
  ".tabulator-cell[tabindex='0']:not(.tabulator-editable)": (node) => set(node, "tabindex", "-1"),
  ".tabulator-tableholder > .tabulator-table": (node) => set(node, "role", "none"),
  ".tabulator": (node) => {
    node.removeAttribute("aria-owns");
    const heading = node.getRootNode().host && headingOf(node.getRootNode().host);
    set(node, "aria-label", heading || "Table");
    if (node.dataset.heard) return;
    node.dataset.heard = "1";
    // the table keeps the tabulator key to itself while a cell is edited, and never lets it go: the page has it
    node.addEventListener("keydown", (event) => { if (event.key === "Tab") event.stopPropagation(); }, true);
  },
  ".tabulator-col": (node) => {
    const title = node.querySelector(".tabulator-col-title");
    const isGroup = node.classList.contains("tabulator-col-group");
    if (!isGroup && title && title.textContent.trim()) return;
    if (node.querySelector("input")) {
      set(node, "role", "columnheader");
      return;
    }
    set(node, "role", "none");
    for (const name of ["aria-sort", "aria-title"]) node.removeAttribute(name);
  },
  ".tabulator-footer": (node) => set(node, "role", "rowgroup"),
  ".tabulator-footer-contents": (node) => set(node, "role", "row"),
  ".tabulator-paginator": (node) => set(node, "role", "gridcell"),
  ".bk-header": (node) => {
    set(node, "role", "tablist");
    const tabs = [...node.querySelectorAll(".bk-tab")];
    // before what they show, also for the keyboard
    if (node.previousElementSibling && node.previousElementSibling.tagName !== "STYLE") node.parentNode.insertBefore(node, firstShown(node.parentNode));
    tabs.forEach((tab, at) => {
      const on = tab.classList.contains("bk-active");
      set(tab, "role", "tab");
      set(tab, "aria-selected", String(on));
      set(tab, "tabindex", on ? "0" : "-1");
      if (tab.dataset.heard) return;
      tab.dataset.heard = "1";
      tab.addEventListener("keydown", (event) => {
        const all = [...tab.parentNode.querySelectorAll(".bk-tab")];
        const here = all.indexOf(tab);
        const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1, Enter: here, " ": here }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = all[(to + all.length) % all.length];
        next.click();
        setTimeout(() => {
          const drawn = [...next.getRootNode().querySelectorAll(".bk-tab")];
          (drawn[(to + all.length) % all.length] || next).focus();
        }, 60);
      });
    });
  },
  "button.bk-btn": (node) => {
    // a download hears clicks on the words alone: neither the keys nor the rim of its button
    const link = node.querySelector(":scope > a");
    if (!link || node.dataset.heard) return;
    node.dataset.heard = "1";
    node.addEventListener("click", (event) => { if (event.target === node) link.click(); });
  },
  ".bk-btn-group .bk-btn": (node) => set(node, "aria-pressed", String(node.classList.contains("bk-active"))),
};
function firstShown(parent) {
  return [...parent.children].find((child) => child.tagName !== "STYLE" && child.tagName !== "LINK") || null;
}
function headingOf(host) {
  // the title of the card that a part stands in
  for (let at = host; at; at = at.parentElement || (at.getRootNode().host ?? null)) {
    for (let other = at.previousElementSibling; other; other = other.previousElementSibling) {
      const title = (other.shadowRoot || other).querySelector("h3, h4");
      if (title) return title.textContent.trim();
    }
  }
  return "";
}
function mend(root) {
  for (const [css, give] of Object.entries(GIVE)) for (const node of root.querySelectorAll(css)) give(node);
  for (const node of root.querySelectorAll("*")) if (node.shadowRoot && node.getClientRects().length) mend(node.shadowRoot);
}

// A view listens to its model before it is drawn, and the parts beside it may come in a later task. A change in between fails in the view, and nobody
// else hears of it: the page stands still. Here a view hears of it once it is drawn. It must, since drawing alone does not show every change: not new parts.
// A change of parts while parts are built would build them twice, and the first ones would listen for ever: one build waits for the other.
function hearWhenDrawn() {
  let layout = window.Bokeh.Models.get("Row").prototype.default_view.prototype;
  while (!Object.hasOwn(layout, "build_child_views")) layout = Object.getPrototypeOf(layout);
  let any = layout;
  while (!Object.hasOwn(any, "connect")) any = Object.getPrototypeOf(any);
  if (any.hearsWhenDrawn) return;
  any.hearsWhenDrawn = true;
  const connect = any.connect, build = layout.build_child_views;
  any.connect = function (signal, slot) {
    if (!this._slots.has(slot)) this._slots.set(slot, (...news) => {
      const hear = () => { if (!this.is_destroyed) this._await_ready(Promise.resolve(slot.apply(this, news))); };
      let place = this;
      while (place && !("layoutable_views" in place)) place = place.parent;
      if (!place || (place._applied_stylesheets.length && !place.unheard)) return hear();
      if (!place.unheard) {
        place.unheard = [];
        place.render = function () {
          delete this.render;
          this.render();
          // after the task in which Tabulator builds a table
          setTimeout(() => {
            this.unheard.forEach((told) => queueMicrotask(told));
            delete this.unheard;
          });
        };
      }
      place.unheard.push(hear);
    });
    return connect.call(this, signal, slot);
  };
  layout.build_child_views = function () {
    const built = () => build.call(this);
    return this.partsBuilt = (this.partsBuilt ?? Promise.resolve()).then(built, built);
  };
}

// Panel may send rows or columns to a table that Tabulator builds in its next task: it drops them, or fails, and shows the old ones. It may send them
// while somebody types in a cell, and the editor would be gone with the old row. All wait.
function changeTablesInTime() {
  const table = window.Tabulator && window.Tabulator.prototype;
  if (!table || table.changesInTime) return;
  table.changesInTime = true;
  const shown = window.Bokeh.Models.get("panel.models.tabulator.DataTabulator").prototype.default_view.prototype;
  const setData = shown.setData;
  shown.setData = function () {
    const built = this.tabulator.initialized && !this._building;
    if (!built && !this.tabulator.hasWaitingRows) {
      this.tabulator.hasWaitingRows = true;
      this.tabulator.on("tableBuilt", () => setData.call(this).then(() => this.postUpdate()));
    }
    return setData.call(this);  // of a table that is not built it does nothing
  };
  for (const name of ["setData", "setColumns", "redraw"]) {
    const change = table[name];
    table[name] = function (...inputs) {
      const edit = this.modules.edit, cell = edit && edit.currentCell;
      if (this.initialized && !cell) return change.apply(this, inputs);
      if (!this.initialized) return new Promise((done) => this.on("tableBuilt", () => done(change.apply(this, inputs))));
      const before = cell.value, clear = edit.clearEditor;
      return new Promise((done) => {
        edit.clearEditor = (...how) => {
          edit.clearEditor = clear;
          edit.clearEditor(...how);
          setTimeout(() => {
            // what was typed is newer than the rows that waited for it
            const rows = name === "setData" && cell.value !== before ? inputs[0] : [];
            for (const row of rows) if (row._index === cell.row.data._index) row[cell.column.field] = cell.value;
            done(this[name](...inputs));
          });
        };
      });
    };
  }
}

// Each component has a shadow root, for which Panel loads every style sheet again, as a link: all of them adopt the same sheets instead.
function shareStyleSheets() {
  const sheets = {};
  const shared = (url) => {
    if (sheets[url]) return sheets[url];
    const { href } = new URL(url, location.href), sheet = sheets[url] = new CSSStyleSheet({ baseURL: href });
    // what the page has loaded is there at once: a table that is laid out before its style sheet stays as high as a page
    const loaded = [...document.styleSheets].find((other) => other.href === href);
    if (loaded) sheet.replaceSync([...loaded.cssRules].map((rule) => rule.cssText).join("\n"));
    else fetch(url).then((answer) => answer.text()).then((text) => sheet.replace(text));
    return sheet;
  };
  window.Bokeh.Models.get("ImportedStyleSheet").prototype.underlying = function () {
    const sheet = shared(this.url);
    const without = (root) => root.adoptedStyleSheets.filter((other) => other !== sheet);
    return {
      install(root) { (this.root = root).adoptedStyleSheets = [...without(root), sheet]; },
      uninstall() { this.root.adoptedStyleSheets = without(this.root); },
    };
  };
}

// A button puts its text on the clipboard, and says so.
function copyOf(event) {
  const button = event.composedPath().find((node) => node.dataset && node.dataset.copy);
  if (!button) return;
  const words = button.textContent;
  const said = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = words; }, 4000); };
  const select = () => {  // where the page has no secure address, the clipboard is reached by a selection
    const area = document.createElement("textarea");
    area.value = button.dataset.copy; document.body.append(area); area.select();
    if (document.execCommand("copy")) said();
    area.remove();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(button.dataset.copy).then(said, select); else select();
}

// Bokeh lays out everything, once for each part that appears or goes: here what is shown, once for all parts of a moment.
function layOutWhatIsShown(app) {
  if (app.laysOutWhatIsShown) return;
  app.laysOutWhatIsShown = true;
  let due = false;
  const now = app.invalidate_layout;
  app.invalidate_layout = () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      now.call(app);
    });
  };
  let layout = app;
  while (!Object.hasOwn(layout, "layoutable_views")) layout = Object.getPrototypeOf(layout);
  if (layout.ofOurs) return;
  layout.ofOurs = Object.getOwnPropertyDescriptor(layout, "layoutable_views").get;
  Object.defineProperty(layout, "layoutable_views", { get() {
    const parts = layout.ofOurs.call(this);
    // a notebook has views of others
    return this.root.laysOutWhatIsShown ? parts.filter((part) => part.model.visible) : parts;
  } });
}

// Before any part beside the bar is made.
export function initialize() {
  hearWhenDrawn();
}

export function render({ model, el, view }) {
  changeTablesInTime();
  if (model.page) shareStyleSheets();
  const top = make("div", { class: "top" });
  const skip = make("a", { class: "skip", href: "#" }, "Skip to the screen");
  const brand = make("div", { class: "brand" });
  brand.innerHTML = `${BRAND}<span>anonflow</span>`;
  const steps = make("ol", {});
  const nav = make("nav", { "aria-label": "Steps" }, steps);
  const tool = (name, label, title) => {
    const button = make("button", { type: "button", "aria-label": label, title });
    button.innerHTML = icon(name);
    return button;
  };
  const undo = tool("undo", "Undo", "Undo the last change (Ctrl+Z)");
  const redo = tool("redo", "Redo", "Redo (Ctrl+Shift+Z)");
  const theme = tool("moon", "Dark mode", "Dark mode");
  const tools = make("div", { class: "tools", role: "group", "aria-label": "Tools" }, undo, redo, theme);
  const text = make("div", { class: "text", role: "status", "aria-live": "polite" });
  const bar = make("progress", { max: "1", value: "0", "aria-label": "All runs" });
  const trouble = make("span", { class: "trouble" });
  const table = make("span", { class: "table" });
  const others = make("div", {});
  const tables = menu([table], "Your tables", others, make("a", { href: "?table=new" }, "Another table, beside these"));
  tables.addEventListener("toggle", () => { if (tables.open) model.send_msg({ action: "tables" }); });
  const numbers = make("dl", { class: "numbers", "aria-label": "What counts most" });
  const said = make("div", { class: "said" }, model.several ? tables : table, text, bar, trouble, numbers);
  const heading = make("h1", { class: "unseen" });
  const screen = make("h2", { class: "unseen" });
  const line = make("div", { class: "line", role: "region", "aria-label": "What happens" }, said);
  top.append(make("header", {}, skip, heading, screen, brand, nav, tools), line);

  const drawSteps = () => {
    heading.textContent = "anonflow";
    screen.textContent = model.steps[model.step];
    const held = [...steps.children].findIndex((item) => item.contains(el.getRootNode().activeElement));
    steps.replaceChildren(
      ...model.steps.map((name, at) => {
        const number = make("span", { class: "number", "aria-hidden": "true" }, String(at + 1));
        const label = make("span", { class: "step" }, name);
        const caption = make("span", { class: "caption" }, model.captions[at] || "");
        const button = make("button", { type: "button", "data-step": String(at) }, number, label, caption);
        button.title = model.captions[at] || name;
        if (at === model.step) button.setAttribute("aria-current", "step");
        button.addEventListener("click", () => { model.step = at; });
        return make("li", {}, button);
      }),
    );
    if (held >= 0 && steps.children[held]) steps.children[held].firstChild.focus();
  };
  const drawTools = () => {
    undo.disabled = !model.can_undo;
    redo.disabled = !model.can_redo;
  };
  const drawStatus = () => {
    table.textContent = model.table || (model.several ? "Your tables" : "");
    table.hidden = !table.textContent;
    table.title = model.table ? `The table that is open: ${model.table}` : "";
    if (text.textContent !== model.status) text.textContent = model.status;
    bar.hidden = !model.running;
    bar.value = model.share;
    trouble.hidden = model.troubles === 0;
    trouble.textContent = model.troubles === 1 ? "1 thing to settle before Run" : `${model.troubles} things to settle before Run`;
  };
  const drawTables = () => {
    others.replaceChildren(
      make("p", {}, model.tables.length ? "Your other tables" : "No other table is open."),
      ...model.tables.map(([number, name, about]) =>
        make("a", { href: `?table=${encodeURIComponent(number)}` }, name, make("span", { class: "about" }, about))),
    );
  };
  const drawNumbers = () => {
    numbers.replaceChildren(
      ...model.numbers.map(([value, label, title]) =>
        make("div", { title }, make("dt", {}, label), make("dd", {}, value))),
    );
  };
  const drawTheme = () => {
    theme.innerHTML = icon(model.dark ? "sun" : "moon");
    theme.setAttribute("aria-pressed", String(model.dark));
    theme.title = model.dark ? "Light mode" : "Dark mode";
    const app = around(top, "af-app");
    if (app) app.classList.toggle("af-dark", model.dark);
    if (model.page) {
      document.documentElement.style.background = model.dark ? "#11161c" : "#f5f7f9";
      document.documentElement.style.colorScheme = model.dark ? "dark" : "light";
      document.documentElement.dataset.theme = model.dark ? "dark" : "light";
    }
  };
  // the buttons below a screen, to the one before and the one after
  const stepOf = (event) => {
    const path = event.composedPath(), way = (css) => path.some((node) => node.classList && node.classList.contains(css));
    if (!path.some((node) => node.tagName === "BUTTON")) return;
    if (way("af-back")) model.step = Math.max(0, model.step - 1);
    if (way("af-next")) model.step = Math.min(model.steps.length - 1, model.step + 1);
  };
  const main = () => {
    const app = around(top, "af-app");
    return app && app.shadowRoot ? app.shadowRoot.querySelector(".af-main") : null;
  };
  // Until the server shows the step that is marked, the old screen is below it. Where nobody answers, nothing is waited for.
  let answered = model.page;
  const drawBusy = () => {
    const target = main();
    if (!target) return;
    if (answered && model.step !== model.screen) set(target, "aria-busy", "true");
    else target.removeAttribute("aria-busy");
  };

  undo.addEventListener("click", () => model.send_msg({ action: "undo" }));
  redo.addEventListener("click", () => model.send_msg({ action: "redo" }));
  theme.addEventListener("click", () => {
    model.dark = !model.dark;
    try { localStorage.setItem("anonflow-theme", model.dark ? "dark" : "light"); } catch { /* a private window */ }
  });
  skip.addEventListener("click", (event) => {
    event.preventDefault();
    const target = main();
    if (target) { target.setAttribute("tabindex", "-1"); target.focus(); }
  });
  const keys = (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    const at = event.composedPath()[0];
    if (at && (at.tagName === "INPUT" || at.tagName === "TEXTAREA" || at.isContentEditable)) return;
    event.preventDefault();
    model.send_msg({ action: event.shiftKey ? "redo" : "undo" });
  };
  if (model.page) document.addEventListener("keydown", keys);
  if (model.user) {
    const picture = make("span", { class: "tool" });
    picture.innerHTML = icon("user");
    const leave = make("form", { method: "post", action: "./logout" });
    leave.append(make("button", { type: "submit" }, "Sign out"));
    const name = make("span", { class: "name" }, model.user);
    tools.append(menu([picture, make("span", { class: "unseen" }, "Account")], `Signed in as ${model.user}`, make("p", {}, "Signed in as ", name), leave));
  }

  model.on(["steps", "step", "captions"], drawSteps);
  model.on(["can_undo", "can_redo"], drawTools);
  model.on(["status", "running", "share", "troubles", "table"], drawStatus);
  model.on("numbers", drawNumbers);
  model.on("tables", drawTables);
  model.on("dark", drawTheme);
  model.on(["step", "screen"], drawBusy);
  model.on("remove", () => document.removeEventListener("keydown", keys));
  const mending = setInterval(() => {
    const app = around(top, "af-app");
    if (app && app.shadowRoot && !document.hidden) mend(app.shadowRoot);
  }, 700);
  model.on("remove", () => clearInterval(mending));
  model.on("after_layout", () => {
    const target = main();
    layOutWhatIsShown(view.parent);
    view.parent.el.onclick = (event) => { copyOf(event); stepOf(event); };
    if (target) {
      target.setAttribute("role", "main");
      target.setAttribute("aria-label", model.steps[model.step]);
    }
    drawTheme();
  });
  model.on("step", () => { if (model.page) window.scrollTo({ top: 0 }); });
  // a screen begins where it is read from: the buttons below a long one are far from the next one's beginning
  model.on("screen", () => { if (!model.page) view.el.scrollIntoView({ block: "nearest" }); });

  // Each screen has its address, so that Back moves between screens and a page that is loaded anew shows the same one.
  // Not after a "#": Panel pushes such an address once more when it changes, and nothing would be forward of it.
  const address = (at) => `${location.pathname}?screen=${model.steps[at].toLowerCase()}`;
  const named = () => {
    const name = new URLSearchParams(location.search).get("screen");
    return model.steps.findIndex((step) => step.toLowerCase() === name);
  };
  const follow = () => {
    const at = named();
    if (at >= 0 && at !== model.step) model.step = at;
  };
  const title = () => { document.title = `${model.steps[model.step]} · anonflow`; };
  const leave = (event) => {
    // the next page is asked for before this one is gone: the server is told which workspace will be free
    const secure = location.protocol === "https:" ? "; Secure" : "";
    if (model.number) document.cookie = `anonflow-leaving=${model.number}; Path=/; Max-Age=5; SameSite=Strict${secure}`;
    if (model.unsaved) {
      event.preventDefault();
      event.returnValue = "";
    }
  };
  // A server that was stopped or lost is waited for: its next page goes on with the session.
  const waitForServer = () => {
    answered = false;
    drawBusy();
    const ask = async () => {
      try {
        const answer = await fetch("./health", { cache: "no-store" });
        // each page asks for its own table: a browser may have several
        if (answer.ok) { location.replace(`${address(model.step)}&table=${model.folder}`); return; }
      } catch { /* not yet */ }
      setTimeout(ask, 2000);
    };
    text.textContent = model.unsaved ? "The server was lost, and keeps nothing. Load this page again to begin anew." : "The server cannot be reached. This page goes on as soon as it answers.";
    if (!model.unsaved) setTimeout(ask, 1000);
  };
  if (model.page) {
    view.model.document.on_event("connection_lost", waitForServer);
    // what a link brought is on the server by now: loading the page anew must not begin with the link again
    follow();
    history.replaceState(null, "", address(model.step));
    title();
    model.on("step", () => {
      if (named() !== model.step) history.pushState(null, "", address(model.step));
      title();
    });
    window.addEventListener("popstate", follow);
    window.addEventListener("beforeunload", leave);
    model.on("remove", () => {
      window.removeEventListener("popstate", follow);
      window.removeEventListener("beforeunload", leave);
    });
  }
  // in a notebook, changes that come before the browser has drawn the cell do not reach it
  const word = String(Math.random());
  model.send_msg({ action: "here", version: model.version, word });
  if (!model.page) {
    // a saved notebook shows the screens as they were, and nobody answers
    const late = setTimeout(() => {
      text.textContent = "Nothing answers here. If the kernel is not busy, run this cell again.";
      text.classList.add("trouble");
    }, 6000);
    model.on("heard", () => {
      if (model.heard !== word) return;
      clearTimeout(late);
      answered = true;
      text.classList.remove("trouble");
      drawStatus();
    });
    model.on("remove", () => clearTimeout(late));
  }

  drawSteps();
  drawTools();
  drawStatus();
  drawTables();
  drawNumbers();
  let wanted = model.dark;
  if (model.page) {
    let stored = null;
    try { stored = localStorage.getItem("anonflow-theme"); } catch { /* a private window */ }
    wanted = stored === null ? matchMedia("(prefers-color-scheme: dark)").matches : stored === "dark";
  } else if (model.heard === "") {
    // when it is first drawn, it has the theme of its notebook: JupyterLab's, or that of VS Code
    wanted = document.body.dataset.jpThemeLight === "false" || document.body.classList.contains("vscode-dark");
  }
  if (wanted !== model.dark) model.dark = wanted;
  queueMicrotask(drawTheme);
  return top;
}
