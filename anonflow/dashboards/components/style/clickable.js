export function render({ model }) {
  const box = document.createElement("div");
  box.className = "clickable";
  const parts = () => [...box.querySelectorAll("[data-key]")];
  const only = (part) => {
    for (const other of parts()) other.setAttribute("tabindex", other === part ? "0" : "-1");
  };
  const draw = () => {
    const active = box.getRootNode().activeElement;
    const held = active && active.dataset ? active.dataset.key : null;
    const scrolled = box.firstElementChild;
    const [top, left] = scrolled ? [scrolled.scrollTop, scrolled.scrollLeft] : [0, 0];
    box.innerHTML = model.html;
    if (box.firstElementChild) {
      box.firstElementChild.scrollTop = top;
      box.firstElementChild.scrollLeft = left;
    }
    const all = parts();
    const same = held === null ? null : all.find((part) => part.dataset.key === held);
    only(same || all[0]);
    if (same) same.focus({ preventScroll: true });
  };
  const send = (part) => model.send_msg({ key: part.dataset.key });
  box.addEventListener("click", (event) => {
    const part = event.target.closest("[data-key]");
    if (part) { only(part); send(part); }
  });
  box.addEventListener("keydown", (event) => {
    const part = event.target.closest("[data-key]");
    if (!part) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      send(part);
      return;
    }
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const middle = (one) => {
      const at = one.getBoundingClientRect();
      return [at.left + at.width / 2, at.top + at.height / 2];
    };
    const [x, y] = middle(part);
    let best = null, least = Infinity;
    for (const other of parts()) {
      const [u, v] = middle(other);
      const along = (u - x) * way[0] + (v - y) * way[1];
      const aside = Math.abs((u - x) * way[1]) + Math.abs((v - y) * way[0]);
      if (along > 1 && along + 3 * aside < least) { best = other; least = along + 3 * aside; }
    }
    if (best) {
      only(best);
      best.focus();
    }
  });
  model.on("html", draw);
  draw();
  return box;
}
