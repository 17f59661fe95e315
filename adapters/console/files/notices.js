// Notifications of the browser for what waits for a person, while nobody looks at the page.

import { h, say, short } from './dom.js';
import { visible } from './letters.js';

const ASKED = 'dragoman.notices';
const MOST = 3; // are shown at a time: whoever asks for much gets no more

/** What is shown, by the key of what waits. @type {Map<string, Notification>} */
const shown = new Map();

/**
 * Tells from now on what comes to wait while the page is hidden, if the browser was allowed to. It is called once.
 * @param {typeof import('./inbox.js').inbox} inbox
 */
export function start(inbox) {
  /** @type {Set<string>} */
  let known = new Set();
  inbox.subscribe(() => {
    const due = new Set(inbox.due.map((i) => i.key));
    for (const [key, notice] of shown) {
      if (due.has(key)) continue;
      notice.close();
      shown.delete(key);
    }
    for (const item of inbox.due) if (document.hidden && !known.has(item.key)) tell(item);
    known = due;
  });
}

/** Names who and which tool, and nothing of the input. @param {import('./inbox.js').Item} item */
function tell(item) {
  if (!('Notification' in window) || Notification.permission !== 'granted' || shown.size >= MOST) return;
  const a = item.approval, who = visible(short(a ? a.agent : item.question?.agent || 'a tool', 100));
  let notice;
  try {
    notice = new Notification(a ? 'An approval is waiting' : 'A question is waiting', {
      body: a ? who + ' wants to call ' + visible(short(a.name, 100)) : who + ' asks', tag: item.key,
    });
  } catch { // some browsers have them only for pages that are installed
    return;
  }
  shown.set(item.key, notice);
  notice.onclick = () => {
    window.focus();
    location.hash = '#/waiting?item=' + encodeURIComponent(item.key);
    notice.close();
  };
  notice.onclose = () => { if (shown.get(item.key) === notice) shown.delete(item.key); };
}

/** A button that asks the browser for them, which is there until it was pressed once. */
export function offer() {
  const button = h('button', {
    type: 'button', click: async () => {
      localStorage.setItem(ASKED, 'yes');
      const given = await Notification.requestPermission();
      button.hidden = true;
      say(given === 'granted' ? 'This browser tells you when something waits, while you look at something else.' : 'The browser does not allow it.');
    },
  }, 'Tell me here when something waits');
  button.hidden = !('Notification' in window) || Notification.permission !== 'default' || localStorage.getItem(ASKED) !== null;
  return button;
}
