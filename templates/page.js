// What pages gain by scripts; each is complete without: search in the list of endpoints, tabs and copy buttons for code, and
// forms that show the answer of a sample, or the price of a call and take its payment.

export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

/** Hides the rows that do not hold every word, and chapters without rows. */
for (const input of document.querySelectorAll('input[data-filters]')) {
  const table = document.getElementById(input.dataset.filters)
  const count = document.getElementById(`${input.dataset.filters}.count`)
  input.closest('[hidden]').hidden = false
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/)
    let found = 0
    for (const chapter of table.tBodies) {
      const rows = [...chapter.rows].filter(({ className }) => className !== 'chapter')
      for (const row of rows) {
        const text = row.textContent.toLowerCase()
        row.hidden = !words.every((word) => text.includes(word))
      }
      const shown = rows.filter(({ hidden }) => !hidden).length
      chapter.hidden = shown === 0
      found += shown
    }
    count.textContent = `${found} shown`
  })
}

for (const pre of document.querySelectorAll('pre')) {
  const button = element('button', { type: 'button', className: 'copy' }, 'Copy')
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(pre.textContent)
    button.textContent = 'Copied'
    setTimeout(() => (button.textContent = 'Copy'), 2000)
  })
  const box = element('div', { className: 'code' })
  pre.replaceWith(box)
  box.append(pre, button)
}

for (const group of document.querySelectorAll('.snippets')) {
  const panels = [...group.children]
  const tabs = panels.map((panel, place) => {
    panel.id = `code.${place}`
    panel.role = 'tabpanel'
    panel.querySelector('h2').hidden = true
    const tab = element('button', { type: 'button', role: 'tab', id: `code.${place}.tab` }, panel.dataset.title)
    tab.setAttribute('aria-controls', panel.id)
    panel.setAttribute('aria-labelledby', tab.id)
    tab.addEventListener('click', () => select(place))
    tab.addEventListener('keydown', ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key]
      if (step !== undefined) select((place + step + panels.length) % panels.length).focus()
    })
    return tab
  })
  const select = (chosen) => {
    for (const [place, tab] of tabs.entries()) {
      tab.setAttribute('aria-selected', String(place === chosen))
      tab.tabIndex = place === chosen ? 0 : -1
      panels[place].hidden = place !== chosen
    }
    return tabs[chosen]
  }
  group.prepend(element('div', { role: 'tablist', ariaLabel: 'Language' }, ...tabs))
  select(0)
}

/** The request that a form describes. */
function requestOf(form) {
  const { path, method, media } = form.dataset
  const fields = [...form.elements].filter(({ name, value }) => name !== '' && value !== '')
  const at = (place) => fields.filter(({ dataset }) => dataset.place === place)
  const filled = at('path').reduce(
    (made, { name, value }) => made.replace(`{${name}}`, encodeURIComponent(value)),
    path,
  )
  const query = new URLSearchParams(at('query').map(({ name, value }) => [name, value])).toString()
  const url = query === '' ? filled : `${filled}?${query}`
  if (method === 'GET') return { url, options: { headers: { Accept: 'application/json' } } }
  const pairs = at('body').map(({ name, value, dataset }) => [name, valueOf(value, dataset.type)])
  const headers = { Accept: 'application/json', 'Content-Type': media }
  const isForm = media === 'application/x-www-form-urlencoded'
  const whole = form.querySelector('[data-place="whole"]')
  if (whole !== null) return { url, options: { method, headers, body: whole.files?.[0] ?? whole.value } }
  if (media === '') return { url, options: { method } }
  const body = isForm ? new URLSearchParams(pairs).toString() : JSON.stringify(Object.fromEntries(pairs))
  return { url, options: { method, headers, body } }
}

function valueOf(text, type) {
  const [, items] = /^list of (\w+)/.exec(type) ?? []
  if (items !== undefined) return text.split(',').map((item) => valueOf(item.trim(), items))
  if (type === 'string') return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export function reasonsOf(detail) {
  if (!Array.isArray(detail)) return detail
  return detail.map(({ loc, msg }) => `${loc.at(-1)}: ${msg.replace(/^Value error, /, '')}`).join('; ')
}

/** An answer as it is shown: text, or a file to save. */
export async function present(body) {
  const type = body.type.replace(/;.*/, '')
  const isJson = /[/+]json$/.test(type)
  if (!isJson && !type.startsWith('text/')) {
    const link = element('a', { href: URL.createObjectURL(body), download: '' }, 'Save the answer')
    return element('p', {}, link, ` (${type}, ${body.size} bytes)`)
  }
  const text = await body.text()
  const shown = isJson ? JSON.stringify(JSON.parse(text), undefined, 2) : text
  return element('pre', { tabIndex: 0 }, element('code', {}, shown))
}

function notice(words) {
  return element('p', { className: 'notice' }, words)
}

async function runSample(form, place) {
  const { url, options } = requestOf(form)
  place.replaceChildren(element('p', {}, 'Asking…'))
  const answer = await fetch(url, options)
  if (answer.ok)
    return place.replaceChildren(element('p', {}, `${url} answers:`), await present(await answer.blob()))
  const { detail } = await answer.json()
  place.replaceChildren(notice(reasonsOf(detail)))
}

async function showPrice(form, place) {
  const { url, options } = requestOf(form)
  const answer = await fetch(url, options)
  const { price, detail, would_fail: failure } = await answer.json()
  if (answer.status !== 402 || price === undefined) return place.replaceChildren(notice(reasonsOf(detail)))
  const parts = (price.parts ?? []).map(({ part, value, units, amount }) => {
    const counted = units === undefined ? '' : ` (${units} ${units === 1 ? 'unit' : 'units'})`
    return element('li', {}, `${part}${value === undefined ? '' : ` ${value}`}${counted}: $${amount}`)
  })
  place.replaceChildren(
    element('p', {}, `This call costs $${price.amount.replace(/(\.\d\d\d*?)0+$/, '$1')}.`),
    ...(parts.length === 0 ? [] : [element('ul', {}, ...parts)]),
    ...(failure === undefined ? [] : [notice(`It would be refused: ${reasonsOf(failure.detail)}`)]),
  )
}

/** Takes the payment here: a request with a body has no address that could be opened. */
async function openPayment(form, place) {
  const payment = form.querySelector('.payment')
  if (payment.querySelector('[aria-busy="true"]') !== null) return
  const request = requestOf(form)
  const { url, options } = request
  const [{ openWallet }] = await Promise.all([import('./pay.js'), showPrice(form, place)])
  const answer = await fetch(url, { ...options, headers: { ...options.headers, Accept: 'text/html' } })
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
  const wallet = page.getElementById('wallet')
  if (wallet === null) return
  wallet.hidden = false
  payment.replaceChildren(wallet)
  openWallet(wallet, request)
}

for (const form of document.querySelectorAll('form.request')) {
  const place = form.querySelector('[role="status"]')
  const isTrial = form.dataset.form === 'trial'
  const run = (task) => {
    task(form, place).catch(() => place.replaceChildren(element('p', {}, 'No answer: the connection was lost.')))
  }
  form.hidden = false
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (isTrial) run(runSample)
    else if (form.dataset.method === 'GET') location.assign(requestOf(form).url)
    else run(openPayment)
  })
  if (isTrial) continue
  form.addEventListener('change', () => {
    // Offers are for one request; its payment and its answer stay.
    for (const part of form.querySelectorAll('.payment table, .payment .actions')) part.remove()
    run(showPrice)
  })
}
