  // A window in time over a canvas: dragging chooses a part of it; keys, buttons and the wheel zoom and move it.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

  const timeWindow = (figure, canvas, { whole, least, height, gutterOf, draw }) => {
    const paper = canvas.getContext("2d");
    const look = { paper, view: whole(), width: 0, gutter: 0, brush: null };
    look.x = (time) => look.gutter + ((time - look.view[0]) / (look.view[1] - look.view[0])) * (look.width - look.gutter);
    look.time = (at) => look.view[0] + ((at - look.gutter) / (look.width - look.gutter)) * (look.view[1] - look.view[0]);
    // A bar thinner than the pointer is still under it.
    look.near = () => ((look.view[1] - look.view[0]) / (look.width - look.gutter)) * 1.5;
    // How much time lies between two marks of the axis, at the least.
    look.room = () => (look.view[1] - look.view[0]) / Math.max(2, Math.floor((look.width - look.gutter) / 110));

    const measure = () => {
      const ratio = window.devicePixelRatio || 1;
      look.width = figure.clientWidth;
      canvas.style.height = height() + "px";
      canvas.width = Math.round(look.width * ratio);
      canvas.height = Math.round(height() * ratio);
      paper.setTransform(ratio, 0, 0, ratio, 0, 0);
      look.gutter = Math.ceil(gutterOf(paper));
    };
    look.begin = () => {
      look.view = whole();
      measure();
      draw();
    };

    // While a pointer drags, one picture a frame is enough.
    let waiting = false;
    look.redraw = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        draw();
      });
    };
    look.drawMark = (text, at, top, bottom) => {
      const place = look.x(at);
      paper.fillStyle = style("--grid");
      paper.fillRect(Math.round(place), top - 8, 1, bottom - top + 8);
      const half = paper.measureText(text).width / 2;
      paper.fillStyle = style("--muted");
      paper.fillText(text, Math.min(place, look.width - half), top - 20);
    };
    look.drawBrush = (top, bottom) => {
      if (!look.brush) return;
      paper.globalAlpha = 0.14;
      paper.fillStyle = style("--ink");
      paper.fillRect(Math.min(...look.brush), top - 8, Math.abs(look.brush[1] - look.brush[0]), bottom - top + 8);
      paper.globalAlpha = 1;
    };

    const show = (from, to) => {
      const [first, last] = whole();
      const length = Math.min(Math.max(to - from, least(last - first)), last - first);
      const begin = Math.min(Math.max((from + to - length) / 2, first), last - length);
      look.view = [begin, begin + length];
      draw();
    };
    const zoom = (factor, at = (look.view[0] + look.view[1]) / 2) =>
      show(at - (at - look.view[0]) * factor, at + (look.view[1] - at) * factor);
    const move = (part) => {
      const [first, last] = whole();
      const by = Math.min(Math.max((look.view[1] - look.view[0]) * part, first - look.view[0]), last - look.view[1]);
      show(look.view[0] + by, look.view[1] + by);
    };

    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      const place = (moved) =>
        Math.min(Math.max(moved.clientX - canvas.getBoundingClientRect().left, look.gutter), look.width);
      look.brush = [place(event), place(event)];
      canvas.setPointerCapture(event.pointerId);
      const drag = (moved) => {
        look.brush[1] = place(moved);
        look.redraw();
      };
      canvas.addEventListener("pointermove", drag);
      canvas.addEventListener("lostpointercapture", () => {
        canvas.removeEventListener("pointermove", drag);
        const [from, to] = [Math.min(...look.brush), Math.max(...look.brush)];
        look.brush = null;
        if (to - from > 4) show(look.time(from), look.time(to));
        else draw();
      }, { once: true });
    });
    canvas.addEventListener("dblclick", () => show(...whole()));
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(Math.exp(event.deltaY / 300), look.time(event.clientX - canvas.getBoundingClientRect().left));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        move((event.deltaX || event.deltaY) / 800);
      }
    }, { passive: false });
    const KEYS = {
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
      ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), Home: () => show(...whole()),
    };
    canvas.addEventListener("keydown", (event) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    for (const button of figure.querySelectorAll("[data-key]")) {
      button.addEventListener("click", () => KEYS[button.dataset.key]());
    }
    dark.addEventListener("change", draw);
    new ResizeObserver(() => {
      measure();
      draw();
    }).observe(figure);
    return look;
  };
