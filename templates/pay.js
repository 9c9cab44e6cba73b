// Pays for a request: asks for the offer, has a wallet sign it (EIP-1193, EIP-712), and sends the signed payment (x402 v2)
// until the answer is there. A payment is kept in the tab until then, so that none is signed twice.

import { element, present, reasonsOf } from './page.js'

const ATTEMPTS = 5

let announced
const injected = () => window.ethereum ?? announced

/** The sandbox signs for visitors without a wallet. */
const remoteWallet = (path) => ({
  async request(call) {
    const answer = await fetch(path, { method: 'POST', body: JSON.stringify(call) })
    const { result, error } = await answer.json()
    if (error !== undefined) throw error
    return result
  },
})

/** A failure of which the visitor has to know more than its message. */
class Stop extends Error {}

function facts(rows) {
  const given = rows.filter(([, value]) => value)
  return element(
    'dl',
    { className: 'facts' },
    ...given.flatMap(([term, value]) => [element('dt', {}, term), element('dd', {}, value)]),
  )
}

/** Whether an offer is the one whose terms the page shows. */
function isShown({ network, amount, asset, payTo }, terms) {
  return network === terms.network && amount === terms.amount && asset === terms.asset && payTo === terms.payee
}

async function selectChain(wallet, { chain, name, coin, rpc, explorer }) {
  if ((await wallet.request({ method: 'eth_chainId' })) === chain) return
  const select = { method: 'wallet_switchEthereumChain', params: [{ chainId: chain }] }
  try {
    await wallet.request(select)
  } catch (fault) {
    const code = fault.data?.originalError?.code ?? fault.code
    if (code !== 4902) throw fault
    const network = {
      chainId: chain,
      chainName: name,
      nativeCurrency: { name: coin, symbol: coin, decimals: 18 },
      rpcUrls: [rpc],
      blockExplorerUrls: explorer === '' ? [] : [explorer],
    }
    await wallet.request({ method: 'wallet_addEthereumChain', params: [network] })
    await wallet.request(select)
  }
}

const TYPES = {
  EIP712Domain: [
    { name: 'name', type: 'string' },
    { name: 'version', type: 'string' },
    { name: 'chainId', type: 'uint256' },
    { name: 'verifyingContract', type: 'address' },
  ],
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
}

/** The payment as the value of its header. */
async function sign(wallet, account, { challenge, accepted, now }) {
  const nonce = [...crypto.getRandomValues(new Uint8Array(32))]
  const authorization = {
    from: account,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: '0',
    validBefore: String(Math.floor(now / 1000) + accepted.maxTimeoutSeconds),
    nonce: `0x${nonce.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`,
  }
  const domain = {
    name: accepted.extra.name,
    version: accepted.extra.version,
    chainId: Number(accepted.network.split(':')[1]),
    verifyingContract: accepted.asset,
  }
  const data = { types: TYPES, primaryType: 'TransferWithAuthorization', domain, message: authorization }
  const signature = await wallet.request({
    method: 'eth_signTypedData_v4',
    params: [account, JSON.stringify(data)],
  })
  const { x402Version, resource, extensions } = challenge
  const payment = { x402Version, resource, accepted, payload: { signature, authorization }, extensions }
  return btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(payment))))
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

const CHARGES = {
  no: 'Nothing was charged.',
  yes: 'The payment was charged. Send the same one again to get its answer.',
  unknown: 'Not known yet. Send the same payment again: it is charged once at most.',
}

/** What tells one request of a tab from others: a payment is for its method, address and body. */
function nameOf({ url, options: { method = 'GET', body = '' } }) {
  const sent = typeof body === 'string' ? body : `${body.name} ${body.size} ${body.lastModified}`
  return `payment for ${method} ${url} ${sent}`
}

/** Lets a wallet pay for a request in the part of a page that shows its offers. */
export function openWallet(section, request) {
  const { url, options } = request
  const kept = nameOf(request)
  const buttons = [...section.querySelectorAll('button')]
  const status = section.querySelector('[id="wallet.status"]')
  const outcome = section.querySelector('[id="wallet.outcome"]')

  function say(words) {
    status.textContent = words
  }

  function show(title, ...parts) {
    say('')
    outcome.replaceChildren(element('h3', { tabIndex: -1 }, title), ...parts)
    outcome.firstChild.focus()
  }

  function ask(headers) {
    return fetch(url, { ...options, headers: { ...options.headers, ...headers }, cache: 'no-store' })
  }

  async function readOffer(terms) {
    const answer = await ask({ Accept: 'application/json' })
    const header = answer.headers.get('PAYMENT-REQUIRED')
    if (answer.status !== 402 || header === null)
      throw new Stop(`This address answers ${answer.status} now. Load the page again.`)
    const challenge = JSON.parse(atob(header))
    const accepted = challenge.accepts.find((offer) => isShown(offer, terms))
    if (accepted === undefined) throw new Stop('The offer has changed. Load the page again to see the new one.')
    // The clock of the seller: it judges whether a payment has expired.
    return { challenge, accepted, now: Date.parse(answer.headers.get('Date')) || Date.now() }
  }

  /** Sends one payment until it is decided: the same one again is charged once at most. */
  async function send(payment) {
    say('The payment is sent.')
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt === ATTEMPTS
      try {
        const answer = await ask({ 'PAYMENT-SIGNATURE': payment, Accept: 'application/json, */*;q=0.5' })
        const body = await answer.blob()
        const wait = Number(answer.headers.get('Retry-After'))
        if (answer.status < 500 || !wait || isLast) return showAnswer(answer, body)
        say('The payment is not decided yet. The same one is sent again: it is charged once at most.')
        await pause(wait * 1000)
      } catch {
        if (isLast) return showLost()
        say('The connection was lost. The same payment is sent again: it is charged once at most.')
        await pause(attempt * 1000)
      }
    }
  }

  function showLost() {
    const words =
      'The payment may have been charged. Do not sign another: the same one is answered when it is sent again.'
    show('No answer has arrived', element('p', {}, words), againButton())
  }

  function againButton() {
    const button = element('button', { type: 'button' }, 'Send the same payment again')
    button.addEventListener('click', () => work(() => send(sessionStorage.getItem(kept))))
    return element('p', {}, button)
  }

  async function showAnswer(answer, body) {
    const { headers, ok } = answer
    const receipt = JSON.parse(atob(headers.get('PAYMENT-RESPONSE') ?? btoa('{}')))
    const { network, amount, explorer } = rowOf(receipt.network)
    const payment = headers.get('Ratecard-Payment')
    const transaction = receipt.transaction
    const link = explorer ? element('a', { href: `${explorer}/tx/${transaction}` }, transaction) : transaction
    if (ok) {
      sessionStorage.removeItem(kept)
      const earlier = headers.get('Ratecard-Charged') === 'earlier'
      show(
        'Answer',
        await present(body),
        facts([
          ['Charged', earlier ? 'nothing now: an earlier payment has paid for it' : `${amount} on ${network}`],
          ['Payment', payment],
          ['Transaction', transaction && link],
          ['Payer', receipt.payer],
        ]),
      )
      return
    }
    const problem = await body.text().then(JSON.parse).catch(() => ({}))
    const { title, detail, hint, retryable, charged = 'unknown' } = problem
    const isOpen = retryable === true || charged !== 'no'
    if (!isOpen) sessionStorage.removeItem(kept)
    show(
      title ?? `Answer ${answer.status}`,
      element('p', {}, [reasonsOf(detail), hint].filter(Boolean).join('. ').replaceAll('..', '.')),
      facts([
        ['Charged', CHARGES[charged]],
        ['Payment', payment],
        ['Transaction', transaction && link],
      ]),
      ...(isOpen ? [againButton()] : []),
    )
  }

  /** What the page says of a network. */
  function rowOf(id) {
    const { name = id, due, explorer } = buttons.find(({ dataset }) => dataset.network === id)?.dataset ?? {}
    return { network: name, amount: due ?? 'the price', explorer }
  }

  async function pay({ dataset }) {
    const wallet = dataset.wallet === undefined ? injected() : remoteWallet(dataset.wallet)
    say('Waiting for the wallet to connect.')
    const [account] = await wallet.request({ method: 'eth_requestAccounts' })
    await selectChain(wallet, dataset)
    const offer = await readOffer(dataset)
    say(`Confirm in the wallet: ${dataset.due} on ${dataset.name} to ${dataset.payee}.`)
    const payment = await sign(wallet, account, offer)
    sessionStorage.setItem(kept, payment)
    await send(payment)
  }

  /** One thing at a time, and no new payment while one is open. */
  async function work(task) {
    section.ariaBusy = 'true'
    for (const button of buttons) button.disabled = true
    try {
      await task()
    } catch (fault) {
      const said =
        fault instanceof Stop
          ? fault.message
          : `The wallet says: ${String(fault.message ?? fault).replace(/\.$/, '')}.`
      const open = sessionStorage.getItem(kept) !== null
      const words = element('p', {}, `${said} ${open ? CHARGES.unknown : CHARGES.no}`)
      show('Not paid', words, ...(open ? [againButton()] : []))
    }
    const isOpen = sessionStorage.getItem(kept) !== null
    for (const button of buttons) button.disabled = isOpen
    section.ariaBusy = 'false'
  }

  function offerButtons() {
    for (const button of buttons)
      button.hidden = button.dataset.wallet === undefined && injected() === undefined
    if (buttons.every(({ hidden }) => hidden))
      say('No wallet was found in this browser. Any wallet extension that holds the token can pay here.')
    else if (outcome.childElementCount === 0) say('')
  }

  for (const button of buttons) button.addEventListener('click', () => work(() => pay(button)))
  window.addEventListener('eip6963:announceProvider', ({ detail }) => {
    announced ??= detail.provider
    offerButtons()
  })
  offerButtons()
  window.dispatchEvent(new Event('eip6963:requestProvider'))
  if (sessionStorage.getItem(kept) !== null) {
    for (const button of buttons) button.disabled = true
    const words = 'This tab has signed a payment for this request and has no answer to it yet.'
    show('A payment is open', element('p', {}, words), againButton())
  }
}

const own = document.getElementById('wallet')
if (own !== null) openWallet(own, { url: location.pathname + location.search, options: {} })
