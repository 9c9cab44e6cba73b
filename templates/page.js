// What pages gain by scripts; each is complete without: search in the list of endpoints, tabs, colours and copy buttons for
// code, and a form that shows the answer of a sample or of a call beside it, and puts its values into the code.

import { colourCode, dress, element, notice, present, reasonsOf } from './answer.js'

/** Hides the rows that do not hold every word, in what they show or in what they are about, and chapters without rows. */
for (const input of document.querySelectorAll('input[data-filters]')) {
  const table = document.getElementById(input.dataset.filters)
  const count = document.getElementById(`${input.dataset.filters}.count`)
  const form = input.closest('form')
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/)
    let found = 0
    for (const chapter of table.tBodies) {
      const rows = [...chapter.rows].filter(({ className }) => className !== 'chapter')
      for (const row of rows) {
        const text = `${chapter.rows[0].textContent} ${row.textContent} ${row.dataset.words}`.toLowerCase()
        row.hidden = !words.every((word) => text.includes(word))
      }
      const shown = rows.filter(({ hidden }) => !hidden).length
      chapter.hidden = shown === 0
      found += shown
    }
    count.textContent = found === 0 ? 'Nothing here has all of these words.' : `${found} shown`
  }
  form.hidden = false
  form.addEventListener('submit', (event) => event.preventDefault())
  input.addEventListener('input', filter)
  input.value = new URLSearchParams(location.search).get('q') ?? ''
  if (input.value !== '') filter()
}

for (const pre of document.querySelectorAll('pre')) dress(pre)

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

for (const link of document.querySelectorAll('a[data-copies]')) {
  const label = link.dataset.copies
  const button = element('button', { type: 'button', className: 'quiet' }, label)
  button.addEventListener('click', async () => {
    try {
      const answer = await fetch(link.href)
      await navigator.clipboard.writeText(await answer.text())
      button.textContent = 'Copied'
    } catch {
      button.textContent = 'Not copied: open the page in Markdown'
    }
    setTimeout(() => (button.textContent = label), 2000)
  })
  link.after(' ', button)
}

/** Whether a field still has what is meant when it is left out. */
function isUntouched(field) {
  if (field.required) return false
  return field.selectedOptions?.[0]?.defaultSelected ?? field.value === field.defaultValue
}

/** What is sent by the form of a call, or of its sample, which may take other fields. */
function fieldsOf(form, does) {
  return [...form.elements].filter(
    (field) =>
      field.name !== '' &&
      field.value !== '' &&
      !isUntouched(field) &&
      (field.dataset.only === undefined || field.dataset.only === does),
  )
}

/** The request that a form describes. */
function requestOf(form, does) {
  const { path, sample, method, media } = form.dataset
  const fields = fieldsOf(form, does)
  const at = (place) => fields.filter(({ dataset }) => dataset.place === place)
  const filled = at('path').reduce(
    (made, { name, value }) => made.replace(`{${name}}`, encodeURIComponent(value)),
    does === 'sample' ? sample : path,
  )
  const query = new URLSearchParams(at('query').map(({ name, value }) => [name, value])).toString()
  const readable = query.replace(/%2C|%3A|%2F/g, decodeURIComponent)
  const url = query === '' ? filled : `${filled}?${readable}`
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

/** Puts the values of the form into the code of the page. */
function followForm(form) {
  const snippets = document.querySelector('.snippets')
  if (snippets === null) return
  const { url, body, arguments: given } = snippets.dataset
  const { origin } = new URL(url)
  const codes = [...snippets.querySelectorAll('code')].map((code) => ({ code, source: code.textContent }))
  const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`
  form.addEventListener('input', () => {
    const request = requestOf(form, 'call')
    const sent = request.options.body
    const fields = fieldsOf(form, 'call').map(({ name, value, dataset }) => [name, valueOf(value, dataset.type)])
    const changes = [[url, `${origin}${request.url.replaceAll("'", '%27')}`]]
    if (body !== '' && typeof sent === 'string')
      changes.push([inShell(body), inShell(sent)], [JSON.stringify(body), JSON.stringify(sent)])
    changes.push([`"arguments":${given}`, `"arguments":${JSON.stringify(Object.fromEntries(fields))}`])
    for (const { code, source } of codes) {
      code.firstChild.data = changes.reduce((text, [from, to]) => text.replaceAll(from, () => to), source)
      colourCode(code)
    }
  })
}

for (const form of document.querySelectorAll('form.request')) openForm(form)

function openForm(form) {
  const status = form.querySelector('[role="status"]')
  const payment = form.querySelector('.payment')
  const buyButton = form.querySelector('[data-does="call"]')
  const answerTitle = document.getElementById('answer.title')
  const answerPlace = document.getElementById('answer')
  const isSold = answerPlace !== null && buyButton.textContent.startsWith('Buy')

  function showAnswer(title, ...parts) {
    status.replaceChildren()
    answerTitle.textContent = title
    answerTitle.tabIndex = -1
    answerPlace.replaceChildren(...parts)
    answerTitle.focus()
  }

  async function run(does) {
    const { url, options } = requestOf(form, does)
    const answer = await fetch(url, options)
    const body = await answer.blob()
    const asked = element('p', { className: 'soft' }, element('code', {}, `${options.method ?? 'GET'} ${url}`))
    if (answer.ok) return showAnswer(does === 'sample' ? 'Free sample' : 'Answer', asked, await present(body))
    const { title, detail, hint } = await body.text().then(JSON.parse).catch(() => ({}))
    const words = [reasonsOf(detail) ?? title ?? `The service answers ${answer.status}`, hint].filter(Boolean)
    showAnswer('No answer', asked, notice(words.map((each) => each.replace(/\.$/, '')).join('. '), '.'))
  }

  /** What the call costs as it is filled in; false when it cannot be bought. */
  async function showPrice() {
    const { url, options } = requestOf(form, 'call')
    const answer = await fetch(url, options)
    const { price, detail, would_fail: failure } = await answer.json()
    if (answer.status !== 402 || price === undefined) {
      status.replaceChildren(notice(reasonsOf(detail)))
      return false
    }
    const parts = (price.parts ?? []).map(({ part, value, units, amount }) => {
      const counted = units === undefined ? '' : ` (${units} ${units === 1 ? 'unit' : 'units'})`
      return element('li', {}, `${part}${value === undefined ? '' : ` ${value}`}${counted}: $${amount}`)
    })
    // Of metered work the most is known before it.
    const { amount: fixed, max } = price
    const due = `${fixed === undefined ? 'at most ' : ''}$${(fixed ?? max).replace(/(\.\d\d\d*?)0+$/, '$1')}`
    buyButton.textContent = `Buy for ${due}`
    status.replaceChildren(
      element('p', {}, `This call costs ${due}.`),
      ...(parts.length === 0 ? [] : [element('ul', {}, ...parts)]),
      ...(failure === undefined ? [] : [notice(`It would be refused: ${reasonsOf(failure.detail)}`)]),
    )
    return failure === undefined
  }

  /** Takes the payment here, for any method: the page of the 402 has the offers. */
  async function buy() {
    if (payment.querySelector('[aria-busy="true"]') !== null) return
    payment.replaceChildren()
    const request = requestOf(form, 'call')
    const { url, options } = request
    const [{ openWallet }, isDue] = await Promise.all([import('./pay.js'), showPrice()])
    if (!isDue) return
    const answer = await fetch(url, { ...options, headers: { ...options.headers, Accept: 'text/html' } })
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
    const wallet = page.getElementById('wallet')
    if (wallet === null)
      return status.append(notice('A wallet in a browser cannot pay for this. The code on this page can.'))
    wallet.hidden = false
    for (const hint of wallet.querySelectorAll('noscript')) hint.remove()
    payment.replaceChildren(wallet)
    openWallet(wallet, request, (title, ...parts) => showAnswer(title, ...parts))
  }

  /** One thing at a time; the buttons say that it is under way. */
  async function work(task) {
    const buttons = [...form.querySelectorAll('[data-does]')]
    for (const button of buttons) button.disabled = true
    answerPlace.ariaBusy = 'true'
    status.replaceChildren(element('p', { className: 'soft' }, 'Waiting for the answer…'))
    try {
      await task()
    } catch {
      status.replaceChildren(notice('No answer: the connection was lost. Nothing was charged. Try again.'))
    }
    if (status.textContent === 'Waiting for the answer…') status.replaceChildren()
    answerPlace.ariaBusy = 'false'
    for (const button of buttons) button.disabled = false
  }

  form.hidden = false
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const does = event.submitter?.dataset.does ?? 'call'
    void work(does === 'call' && isSold ? buy : () => run(does))
  })
  form.addEventListener('change', ({ target }) => {
    if (target.closest('.payment') !== null) return
    // Offers are for one request; its answer stays.
    payment.replaceChildren()
    // The buttons stay enabled: a click on one of them is what has ended the change.
    if (isSold && form.dataset.counted !== undefined) showPrice().catch(() => {})
  })
  followForm(form)
}
