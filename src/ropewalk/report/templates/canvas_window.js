  // A window over a canvas, along one axis or two: dragging chooses a part; keys, buttons and the wheel zoom and move it.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
  const within = (value, low, high) => Math.min(Math.max(value, low), high);

  // `whole` is the widest view; `tall`, where there is a second axis, has its widest view and its pixels, bottom first.
  const canvasWindow = (figure, canvas, { whole, least, height, gutterOf, draw, tall }) => {
    const paper = canvas.getContext("2d");
    const look = { paper, view: whole(), high: tall?.whole(), width: 0, gutter: 0, brush: null };
    look.x = (value) => look.gutter + ((value - look.view[0]) / (look.view[1] - look.view[0])) * (look.width - look.gutter);
    look.at = (px) => look.view[0] + ((px - look.gutter) / (look.width - look.gutter)) * (look.view[1] - look.view[0]);
    look.y = (value) => tall.pixels[0] + ((value - look.high[0]) / (look.high[1] - look.high[0])) * (tall.pixels[1] - tall.pixels[0]);
    const up = (py) => look.high[0] + ((py - tall.pixels[0]) / (tall.pixels[1] - tall.pixels[0])) * (look.high[1] - look.high[0]);
    // A bar thinner than the pointer is still under it.
    look.near = () => ((look.view[1] - look.view[0]) / (look.width - look.gutter)) * 1.5;
    // How much lies between two marks of the axis, at the least.
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
      look.high = tall?.whole();
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
      const { x, y } = look.brush;
      const [from, to] = tall ? [Math.min(...y), Math.max(...y)] : [top - 8, bottom];
      paper.globalAlpha = 0.14;
      paper.fillStyle = style("--ink");
      paper.fillRect(Math.min(...x), from, Math.abs(x[1] - x[0]), to - from);
      paper.globalAlpha = 1;
    };

    // Beside the pointer, inside the figure, above it where there is no room below.
    look.putTip = (tip, px, py) => {
      const below = py + 18 + tip.offsetHeight < height() || py < tip.offsetHeight + 18;
      tip.style.left = within(px + 14, 0, Math.max(0, look.width - tip.offsetWidth)) + "px";
      tip.style.top = canvas.offsetTop + (below ? py + 18 : py - tip.offsetHeight - 10) + "px";
    };

    const clamped = ([from, to], [first, last], shortest) => {
      const length = within(to - from, shortest, last - first);
      const begin = within((from + to - length) / 2, first, last - length);
      return [begin, begin + length];
    };
    const show = (view, high) => {
      const [first, last] = whole();
      look.view = clamped(view, [first, last], least(last - first));
      if (tall) {
        const [low, top] = tall.whole();
        look.high = clamped(high, [low, top], least(top - low));
      }
      draw();
    };
    const all = () => show(whole(), tall?.whole());
    const middle = (range) => range && (range[0] + range[1]) / 2;
    const scaled = (range, factor, at) => range && range.map((end) => at + (end - at) * factor);
    const zoom = (factor, at = middle(look.view), above = middle(look.high)) =>
      show(scaled(look.view, factor, at), scaled(look.high, factor, above));
    const moved = (range, part, ends) => {
      if (!range) return range;
      const by = within((range[1] - range[0]) * part, ends[0] - range[0], ends[1] - range[1]);
      return range.map((end) => end + by);
    };
    const move = (part, above = 0) => show(moved(look.view, part, whole()), moved(look.high, above, tall?.whole()));

    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      const place = (moved) => {
        const box = canvas.getBoundingClientRect();
        const py = moved.clientY - box.top;
        return [within(moved.clientX - box.left, look.gutter, look.width), tall ? within(py, tall.pixels[1], tall.pixels[0]) : py];
      };
      const [px, py] = place(event);
      look.brush = { x: [px, px], y: [py, py] };
      canvas.setPointerCapture(event.pointerId);
      const drag = (moved) => {
        [look.brush.x[1], look.brush.y[1]] = place(moved);
        look.redraw();
      };
      canvas.addEventListener("pointermove", drag);
      canvas.addEventListener("lostpointercapture", () => {
        canvas.removeEventListener("pointermove", drag);
        const { x, y } = look.brush;
        look.brush = null;
        const [left, right] = [Math.min(...x), Math.max(...x)];
        const [above, below] = [Math.min(...y), Math.max(...y)];
        const chosen = right - left > 4 && (!tall || below - above > 4);
        if (chosen) show([look.at(left), look.at(right)], tall && [up(below), up(above)]);
        else draw();
      }, { once: true });
    });
    canvas.addEventListener("dblclick", all);
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const box = canvas.getBoundingClientRect();
        zoom(Math.exp(event.deltaY / 300), look.at(event.clientX - box.left), tall && up(event.clientY - box.top));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        move((event.deltaX || event.deltaY) / 800);
      }
    }, { passive: false });
    const KEYS = {
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), Home: all,
      ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
      ...(tall && { ArrowUp: () => move(0, 0.2), ArrowDown: () => move(0, -0.2) }),
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
