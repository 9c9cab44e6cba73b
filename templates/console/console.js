// The pages are complete without this: it fills in calls and figures while the page Now is open.
const feed = document.getElementById('feed')

/** The element that a fragment of the server describes. */
function elementOf(html) {
  const template = document.createElement('template')
  template.innerHTML = html.trim()
  return template.content.firstElementChild
}

const MOST_ROWS = 30

function showCall({ id, html }) {
  const known = document.getElementById(id)
  if (html === undefined) return known?.remove()
  const row = elementOf(html)
  if (known === null) feed.prepend(row)
  else known.replaceWith(row)
  row.classList.add('fresh')
  document.getElementById('no-calls')?.remove()
  while (feed.rows.length > MOST_ROWS) feed.rows[feed.rows.length - 1].remove()
}

function showPart({ id, html }) {
  const known = document.getElementById(id)
  // A replaced element loses the focus.
  if (known === null || known === document.activeElement) return
  const part = elementOf(html)
  if (known.outerHTML !== part.outerHTML) known.replaceWith(part)
}

if (feed !== null) {
  const live = document.querySelector('.live')
  const events = new EventSource('/events')
  events.addEventListener('open', () => (live.hidden = false))
  events.addEventListener('error', () => (live.hidden = true))
  events.addEventListener('call', ({ data }) => showCall(JSON.parse(data)))
  events.addEventListener('part', ({ data }) => showPart(JSON.parse(data)))
}
