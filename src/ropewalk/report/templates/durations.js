  // Nanoseconds as people write them, and the round numbers between marks of an axis.
  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const SCALE = [1, 2, 5];
  const written = (time) => {
    const [size, unit] = UNITS.find(([least]) => Math.abs(time) >= least) ?? UNITS[3];
    return `${Number((time / size).toPrecision(4))}\u00a0${unit}`;
  };
  const roundStep = (room) => {
    const power = 10 ** Math.floor(Math.log10(room));
    return SCALE.map((factor) => factor * power).find((size) => size >= room) ?? 10 * power;
  };
