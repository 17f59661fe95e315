// What has been on the screen: a decision is possible once all of what it is about was.

const SLACK = 2; // pixels: what is drawn is rounded

/**
 * Calls once all of an element was on the screen, in one piece or piece by piece.
 * @param {HTMLElement} element
 * @param {() => void} done
 */
export function whenSeen(element, done) {
  /** What was seen, from the top of the element, in order and apart. @type {{from: number, to: number}[]} */
  let seen = [];
  let height = 0, width = 0;
  const look = () => {
    const all = element.getBoundingClientRect();
    if (all.height !== height || all.width !== width) { // its lines are elsewhere now
      ({ height, width } = all);
      seen = [];
    }
    const part = onScreen(element, all);
    if (part.to > part.from && !document.hidden) seen = joined([...seen, { from: part.from - all.top, to: part.to - all.top }]);
    const one = seen[0];
    if (height === 0 || !one || one.from > SLACK || one.to < height - SLACK) return;
    stop();
    done();
  };
  let due = 0, shown = false;
  const later = () => {
    if (!element.isConnected) return shown ? stop() : undefined; // it may be put into the page later
    shown = true;
    due ||= requestAnimationFrame(() => {
      due = 0;
      look();
    });
  };
  // It comes into view when it is put into the page, and when it or what is around it moves.
  const watch = new IntersectionObserver(later, { threshold: [0, 0.5, 1] });
  const stop = () => {
    watch.disconnect();
    removeEventListener('scroll', later, true);
    removeEventListener('resize', later);
  };
  watch.observe(element);
  addEventListener('scroll', later, { capture: true, passive: true });
  addEventListener('resize', later);
}

/**
 * From where to where an element is on the screen: not what scrolls away inside of another one.
 * @param {HTMLElement} element
 * @param {DOMRect} all
 */
function onScreen(element, all) {
  let from = Math.max(0, all.top), to = Math.min(innerHeight, all.bottom), left = 0, right = innerWidth;
  // What stands before the end of the page, or over the beginning of a column.
  const bar = document.querySelector('.steering')?.getBoundingClientRect(), top = element.closest('.column')?.querySelector('.top')?.getBoundingClientRect();
  if (bar?.height) to = Math.min(to, bar.top);
  if (top) from = Math.max(from, top.bottom);
  for (let e = element.parentElement; e && e !== document.body; e = e.parentElement) {
    if (getComputedStyle(e).overflowY === 'visible') continue;
    const r = e.getBoundingClientRect();
    from = Math.max(from, r.top);
    to = Math.min(to, r.bottom);
    left = Math.max(left, r.left);
    right = Math.min(right, r.right);
  }
  const whole = all.left >= left - SLACK && all.right <= right + SLACK;
  return whole ? { from, to } : { from: 0, to: 0 };
}

/** @param {{from: number, to: number}[]} all */
function joined(all) {
  all.sort((a, b) => a.from - b.from);
  /** @type {{from: number, to: number}[]} */
  const apart = [];
  for (const one of all) {
    const last = apart[apart.length - 1];
    if (last && one.from <= last.to + SLACK) last.to = Math.max(last.to, one.to);
    else apart.push({ ...one });
  }
  return apart;
}

const STILL = 300; // ms

/**
 * Calls once an element has stayed where it is for a moment.
 * @param {HTMLElement} element
 * @param {() => void} done
 */
export function whenStill(element, done) {
  let last = NaN;
  const look = () => {
    const { top } = element.getBoundingClientRect();
    if (top === last) return done();
    last = top;
    if (element.isConnected) setTimeout(look, STILL);
  };
  look();
}
