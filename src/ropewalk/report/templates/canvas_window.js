  // A window over a canvas. Along one axis dragging enlarges a part; along two it selects one, which arrows move and
  // Enter enlarges. Keys, buttons and the wheel zoom and move the window.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
  const within = (value, low, high) => Math.min(Math.max(value, low), high);

  // `whole` is the widest view; `tall`, where there is a second axis, has its widest view and its pixels, bottom first.
  const canvasWindow = (figure, canvas, { whole, least, height, gutterOf, draw, tall }) => {
    const paper = canvas.getContext("2d");
    const look = { paper, view: whole(), high: tall?.whole(), width: 0, gutter: 0, brush: null, area: null };
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
    // The part that is being dragged over, or the one that is selected.
    const brushed = () => look.brush ?? (look.area && { x: look.area.x.map(look.x), y: look.area.y.map(look.y) });
    look.drawBrush = (top, bottom) => {
      const drawn = brushed();
      if (!drawn) return;
      const { x, y } = drawn;
      const [from, to] = tall ? [Math.min(...y), Math.max(...y)] : [top - 8, bottom];
      paper.globalAlpha = tall ? 0.07 : 0.14;
      paper.fillStyle = paper.strokeStyle = style("--ink");
      paper.fillRect(Math.min(...x), from, Math.abs(x[1] - x[0]), to - from);
      paper.globalAlpha = 0.6;
      paper.lineWidth = 1;
      if (tall) paper.strokeRect(Math.min(...x), from, Math.abs(x[1] - x[0]), to - from);
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
    const select = (area) => {
      look.area = area;
      canvas.style.touchAction = area ? "none" : "";
      draw();
    };
    const all = () => {
      look.area = null;
      show(whole(), tall?.whole());
    };
    const enlarge = () => {
      const area = look.area;
      if (!area) return;
      look.area = null;
      show(area.x, area.y);
    };
    // Without a pointer: a third of the view, in its middle.
    const third = ([low, high]) => [low + (high - low) / 3, high - (high - low) / 3];
    const begin = () => select(look.area ? null : { x: third(look.view), y: third(look.high) });
    const pushed = (range, part, view, grow) => {
      const by = (view[1] - view[0]) * part;
      const [low, high] = [grow ? range[0] : range[0] + by, range[1] + by];
      return [within(low, view[0], view[1]), within(Math.max(high, low + (view[1] - view[0]) / 50), view[0], view[1])];
    };
    const push = (right, above, grow) =>
      select({ x: pushed(look.area.x, right, look.view, grow), y: pushed(look.area.y, above, look.high, grow) });
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
      // A finger scrolls the page, unless something is selected: then it selects anew.
      if (event.button !== 0 || (event.pointerType === "touch" && !look.area)) return;
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
        if (tall) select(chosen ? { x: [look.at(left), look.at(right)], y: [up(below), up(above)] } : null);
        else if (chosen) show([look.at(left), look.at(right)]);
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
    const step = (right, above) => (grow) => (look.area ? push(right / 5, above / 5, grow) : move(right, above));
    const KEYS = {
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), Home: all,
      ArrowLeft: step(-0.2, 0), ArrowRight: step(0.2, 0),
      ...(tall && { ArrowUp: step(0, 0.2), ArrowDown: step(0, -0.2), " ": begin, Enter: enlarge, Escape: () => select(null) }),
    };
    canvas.addEventListener("keydown", (event) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
      if (!act) return;
      event.preventDefault();
      act(event.shiftKey);
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
