import { addressOf, randomKey, sign, type Hex } from '../../../support/payment.ts'
import { ALPHA_USD, mined, signTransfer } from '../../../support/tempo.ts'
import {
  mppPayment,
  payByMpp,
  payByX402,
  v1Payment,
  x402Payment,
  type Payment,
  type RawBody,
} from './buyer.ts'
import type { CaseContext, CaseRunner, PaymentFaults } from './case-runner.ts'
import type { Condition } from './node-proxy.ts'

const STRANGER = '0x00000000000000000000000000000000005742a9'

/** Cases of both protocols. */
export async function commonCases(runner: CaseRunner): Promise<void> {
  const { run } = runner
  await run('unpaid', async ({ step }) => {
    await step('asked', 'item')
  })
  await run('unpaid, with parameters that are not valid', async ({ offers, step }) => {
    await offers('item')
    await step('asked', 'item', undefined, { args: { n: 0, unknown: 'x' } })
  })
  await run('unpaid, of work that is paid for first', async ({ step }) => {
    await step('asked', 'deep')
  })
  await run('one payment, for one thing and for others', async ({ args, offers, pay, step }) => {
    const payment = await pay(await offers('item'))
    await offers('other')
    await step('paid', 'item', payment)
    await step('the same payment again', 'item', payment)
    await step('the same payment for other arguments', 'item', payment, { args: { n: args.n + 500 } })
    await step('the same payment for another operation', 'other', payment)
  })
  await run('a lost answer, asked for again with its payment', async ({ offers, pay, step }) => {
    const payment = await pay(await offers('item'))
    await step('paid', 'item', payment, { on: 'a connection of its own' })
    await step('the same payment again', 'item', payment)
  })
  await run('a lost answer, asked for with a new payment', async ({ offers, pay, step }) => {
    await step('paid', 'item', await pay(await offers('item')), { on: 'a connection of its own' })
    await step('a new payment', 'item', await pay(await offers('item')))
  })
  await run('two payments for the same thing, each answered', async ({ offers, pay, step }) => {
    await step('paid', 'item', await pay(await offers('item')))
    await step('a new payment', 'item', await pay(await offers('item')))
  })
  await run('parameters that are not valid, with a payment', async ({ offers, pay, step }) => {
    const payment = await pay(await offers('item'))
    await step('paid', 'item', payment, { args: { n: 0 } })
  })
  await run('two protocols at once', async ({ key, offers, step }) => {
    const given = await offers('item')
    const x402 = await payByX402(given, key)
    const mpp = await payByMpp(runner.site.chains.tempo.rpcUrl, given, key)
    await step('paid', 'item', { http: { ...x402.http, ...mpp.http }, mcp: { ...x402.mcp, ...mpp.mcp } })
  })
  await run('a source that fails, and then does not', async ({ offers, pay, step }) => {
    const payment = await pay(await offers('flaky'))
    await step('paid', 'flaky', payment)
    await step('the same payment again', 'flaky', payment)
  })
  for (const operation of ['thrown', 'picky', 'slow', 'large']) {
    await run(`work that fails: ${operation}`, async ({ offers, pay, step }) => {
      await step('paid', operation, await pay(await offers(operation)))
    })
  }
  await run('paid for first', async ({ offers, pay, step }) => {
    const payment = await pay(await offers('deep'))
    await step('paid', 'deep', payment, { on: 'a connection of its own' })
    await step('the same payment again', 'deep', payment)
  })
  await run('paid for first, and the work refuses a parameter', async ({ offers, pay, step }) => {
    const payment = await pay(await offers('deep-picky'))
    await step('paid', 'deep-picky', payment)
    await step('the same payment again', 'deep-picky', payment)
  })
  await run('paid for first, and the work fails twice', async ({ offers, pay, step }) => {
    const payment = await pay(await offers('deep-flaky'))
    await step('paid', 'deep-flaky', payment)
    await step('the same payment again', 'deep-flaky', payment)
    await step('the same payment once more', 'deep-flaky', payment)
  })
  await run('a route whose source is not configured', async ({ offers, pay, step }) => {
    const payment = await pay(await offers('item'))
    await step('unpaid', 'unset')
    if (runner.transport.name === 'http') await step('paid', 'unset', await pay(await offers('unset')))
    else await step('paid', 'unset', payment)
  })
  if (runner.transport.name === 'http')
    await run('a route that is planned', async ({ offers, pay, step }) => {
      await step('unpaid', 'planned')
      await step('paid', 'planned', await pay(await offers('planned')))
    })
  await run(
    'the payer spends the money while the work is done',
    async ({ offers, pay, step }) => {
      await step('paid', 'drained', await pay(await offers('drained')))
    },
    await runner.wallet(),
  )
  await run(
    'the payer does not have the money',
    async ({ offers, pay, step }) => {
      await step('paid', 'item', await pay(await offers('item')))
    },
    randomKey(),
  )
}

/** Payments with one fault each, among others. */
export async function x402Cases(runner: CaseRunner): Promise<void> {
  const { run, site } = runner
  const now = (): bigint => BigInt(Math.floor(Date.now() / 1000))
  const faulty: Readonly<Record<string, () => PaymentFaults['x402']>> = {
    'another amount is signed': () => ({ value: 9_999n }),
    'another payee is signed': () => ({ to: STRANGER }),
    'another amount is accepted': () => ({ accepted: { amount: '1' } }),
    'another network is accepted': () => ({ accepted: { network: 'eip155:137' } }),
    'another asset is accepted': () => ({ accepted: { asset: STRANGER } }),
    'another payee is accepted': () => ({ accepted: { payTo: STRANGER } }),
    expired: () => ({ validBefore: now() - 10n }),
    'too little time is left': () => ({ validBefore: now() + 8n }),
    'not valid yet': () => ({ validAfter: now() + 600n }),
    'a signature of nobody': () => ({ signature: `0x${'11'.repeat(64)}1b` }),
    'a signature of somebody else': () => ({ from: addressOf(randomKey()) }),
    'signed for another chain': () => ({ domain: { chainId: 137 } }),
    'the resource of another route': () => ({ resource: { url: 'https://api.example.com/paid/other' } }),
    'the name of the purchase is too short': () => ({
      extensions: { 'payment-identifier': { info: { required: false, id: 'short' } } },
    }),
  }
  for (const [title, fault] of Object.entries(faulty)) {
    await run(title, async (context) => {
      await context.step(
        'paid',
        'item',
        await context.pay(await context.offers('item'), { x402: fault() ?? {} }),
      )
    })
  }
  await run('an authorization that a stranger has carried out', async ({ key, offers, step }) => {
    const signed = await sign((await offers('item')).x402, key)
    await site.chains.onchain.submit(signed)
    await step('paid', 'item', x402Payment(signed.payload))
  })
  await run('an authorization that was withdrawn', async ({ key, offers, step }) => {
    const signed = await sign((await offers('item')).x402, key)
    await site.chains.onchain.cancel(key, signed.authorization.nonce)
    await step('paid', 'item', x402Payment(signed.payload))
  })
  await run('the same payment again, without the token of its challenge', async ({ key, offers, step }) => {
    const { payload } = await sign((await offers('item')).x402, key)
    await step('paid', 'item', x402Payment(payload))
    await step('without extensions', 'item', x402Payment({ ...payload, extensions: {} }))
  })
  await run('a payment in the envelope of version 1', async ({ key, offers, step }) => {
    const signed = await sign((await offers('item')).x402, key)
    await step('paid', 'item', v1Payment(signed))
  })
  await run('the same payment again, in the envelope of version 1', async ({ key, offers, step }) => {
    const signed = await sign((await offers('item')).x402, key)
    await step('paid', 'item', x402Payment(signed.payload))
    await step('in version 1', 'item', v1Payment(signed))
  })
  await run('another authorization with the nonce of a payment', async ({ key, offers, step }) => {
    const { x402 } = await offers('item')
    const first = await sign(x402, key)
    await step('paid', 'item', x402Payment(first.payload))
    const { nonce, validBefore } = first.authorization
    const second = await sign(x402, key, { nonce, validBefore: validBefore - 1n })
    await step('the other one', 'item', x402Payment(second.payload))
  })
  await run('a new payment with the name of a purchase', async ({ args, offers, pay, step }) => {
    const named = async (operation: string, given?: object): Promise<Payment> => {
      const given402 = await offers(operation, given)
      const info = { required: false, id: `order-${runner.transport.name}-00000000001` }
      const { extensions } = given402.x402
      return pay(given402, { x402: { extensions: { ...extensions, 'payment-identifier': { info } } } })
    }
    await step('paid', 'item', await named('item'))
    await step('for the same', 'item', await named('item'))
    const other = { n: args.n + 500 }
    await step('for other arguments', 'item', await named('item', other), { args: other })
    await step('for another operation', 'other', await named('other'))
  })
  const unreadable: Readonly<Record<string, (payload: object) => Payment>> = {
    'a payment that cannot be read': () => ({
      http: { 'payment-signature': '%%%' },
      mcp: { 'x402/payment': '%%%' },
    }),
    'a payment of version 1': (payload) => x402Payment({ ...payload, x402Version: 1 }),
    'a payment without an authorization': (payload) => x402Payment({ ...payload, payload: {} }),
    'a payment with a number where a text is due': (payload) => x402Payment({ ...payload, accepted: 7 }),
  }
  for (const [title, change] of Object.entries(unreadable)) {
    await run(title, async ({ key, offers, step }) => {
      const { payload } = await sign((await offers('item')).x402, key)
      await step('paid', 'item', change(payload))
    })
  }
}

export async function mppCases(runner: CaseRunner): Promise<void> {
  const { run, site } = runner
  const { rpcUrl, chain } = site.chains.tempo
  const seconds = (): number => Math.floor(Date.now() / 1000)
  const faulty = {
    'another amount is signed': { amount: 9_999n },
    'another payee is signed': { to: STRANGER },
    'another token is signed': { token: ALPHA_USD },
    'without the memo': { memo: null },
    'two transfers in the transaction': { times: 2 },
    'a transaction without an end': { validBefore: null },
    'a transaction of another chain': { chainId: 42431 },
    'a transaction that wants us to pay the fee': { feePayer: true },
  } as const
  for (const [title, faults] of Object.entries(faulty)) {
    await run(title, async ({ offers, pay, step }) => {
      await step('paid', 'item', await pay(await offers('item'), { mpp: faults }))
    })
  }
  await run('a transaction that has expired', async ({ offers, pay, step }) => {
    await step('paid', 'item', await pay(await offers('item'), { mpp: { validBefore: seconds() - 10 } }))
  })
  const changed: Readonly<Record<string, object>> = {
    'a challenge with another id': { id: 'A'.repeat(43) },
    'a challenge of another realm': { realm: 'elsewhere.example.com' },
    'a challenge that ends later': { expires: new Date(Date.now() + 86_400_000).toISOString() },
    'a challenge of another method': { method: 'stripe' },
    'a challenge of another intent': { intent: 'session' },
  }
  for (const [title, change] of Object.entries(changed)) {
    await run(title, async ({ offers, pay, step }) => {
      const { mpp, x402 } = await offers('item')
      await step('paid', 'item', await pay({ x402, mpp: { ...mpp, ...change } }))
    })
  }
  await run('a challenge with another price', async ({ offers, pay, step }) => {
    const { mpp, x402 } = await offers('item')
    const request = { ...mpp.request, amount: '1' }
    await step('paid', 'item', await pay({ x402, mpp: { ...mpp, request } }))
  })
  await run('a signature that was changed', async ({ key, offers, step }) => {
    const { mpp } = await offers('item')
    const raw = await signTransfer(rpcUrl, key, mpp)
    const changed: Hex = `0x${raw.slice(2, -40)}${'1'.repeat(38)}${raw.slice(-2)}`
    await step('paid', 'item', mppPayment(mpp, changed))
  })
  await run('a transaction that its payer has broadcast', async ({ key, offers, step }) => {
    const { mpp } = await offers('item')
    const raw = await signTransfer(rpcUrl, key, mpp)
    await chain.ask('eth_sendRawTransaction', [raw])
    await mined(chain, raw)
    await step('paid', 'item', mppPayment(mpp, raw))
  })
  await run('a challenge that is paid once more with another transaction', async ({ key, offers, step }) => {
    const { mpp } = await offers('item')
    await step('paid', 'item', mppPayment(mpp, await signTransfer(rpcUrl, key, mpp)))
    const validBefore = seconds() + 20
    await step('another one', 'item', mppPayment(mpp, await signTransfer(rpcUrl, key, mpp, { validBefore })))
  })
  const unreadable: Readonly<Record<string, Payment>> = {
    'a credential that cannot be read': {
      http: { authorization: 'Payment %%%' },
      mcp: { 'org.paymentauth/credential': '%%%' },
    },
    'a credential without a challenge': {
      http: { authorization: `Payment ${Buffer.from('{"payload":{}}').toString('base64url')}` },
      mcp: { 'org.paymentauth/credential': { payload: {} } },
    },
    'an authorization that is no payment': {
      http: { authorization: 'Bearer abc' },
      mcp: { 'org.paymentauth/other': {} },
    },
  }
  for (const [title, payment] of Object.entries(unreadable)) {
    await run(title, async ({ offers, step }) => {
      await offers('item')
      await step('paid', 'item', payment)
    })
  }
}

/** Faults that affect all runners of a server at once, until they are removed. */
export async function nodeCases(runners: readonly CaseRunner[]): Promise<void> {
  const to = (condition: Condition) => async (): Promise<void> => {
    for (const { site } of runners) for (const node of Object.values(site.nodes)) node.set(condition)
  }
  await together(runners, 'the node cannot be reached', async ({ offers, pay, step }, meet) => {
    const payments = [await pay(await offers('item')), await pay(await offers('deep'))] as const
    await meet(to('down'))
    await step('paid', 'item', payments[0])
    await step('paid for first', 'deep', payments[1])
    await meet(to('open'))
    await step('the same payment again', 'item', payments[0])
    await step('paid for first, the same payment again', 'deep', payments[1])
  })
  await together(
    runners,
    'nobody knows whether the money has moved',
    async ({ offers, pay, step, get }, meet) => {
      const payments = [await pay(await offers('item')), await pay(await offers('deep'))] as const
      await meet(to('no reply after sending'))
      const [answer] = await Promise.all([
        step('paid', 'item', payments[0], { on: 'a connection of its own' }),
        step('paid for first', 'deep', payments[1], { on: 'a connection of its own' }),
      ])
      const [path = '/payments/none'] =
        /\/payments\/pay_[\w-]+/.exec(answer.headers['location'] ?? answer.body) ?? []
      await get('the state of the payment', path)
      await meet(to('open'))
      await step('the same payment again', 'item', payments[0])
      await step('paid for first, the same payment again', 'deep', payments[1])
      await get('the state of the payment, later', path)
    },
  )
}

type Meet = (change: () => Promise<void>) => Promise<void>

/** One case on all runners of a server. They wait for each other before something changes for all of them. */
async function together(
  runners: readonly CaseRunner[],
  title: string,
  work: (context: CaseContext, meet: Meet) => Promise<void>,
): Promise<void> {
  let waiting: (() => void)[] = []
  const meet: Meet = (change) =>
    new Promise((resolve, reject) => {
      waiting.push(resolve)
      if (waiting.length < runners.length) return
      const met = waiting
      waiting = []
      change().then(() => {
        for (const go of met) go()
      }, reject)
    })
  await Promise.all(runners.map((runner) => runner.run(title, (context) => work(context, meet))))
}

/** Stops the ledger and starts it again. */
export async function storeCases(
  runners: readonly CaseRunner[],
  stop: () => Promise<void>,
  start: () => Promise<void>,
): Promise<void> {
  await together(runners, 'the ledger cannot be reached', async ({ offers, pay, step }, meet) => {
    const [known, fresh] = [await pay(await offers('item')), await pay(await offers('deep'))]
    await step('paid', 'item', known)
    await meet(stop)
    await step('unpaid', 'other')
    await step('a payment that is known', 'item', known)
    await step('a fresh payment', 'deep', fresh)
    await meet(start)
    await step('the fresh payment again, until the ledger is back', 'deep', fresh, {
      until: ({ body }) => !/"ledger_unavailable"/.test(body),
    })
  })
}

/** Calls by other methods than GET, which only HTTP has. */
export async function bodyCases({ run }: CaseRunner): Promise<void> {
  for (const operation of ['POST note', 'PUT note']) {
    await run(`${operation}, its payment once more, and with another body`, async (context) => {
      const { args, offers, pay, step } = context
      await step('unpaid', operation)
      const payment = await pay(await offers(operation))
      await step('paid', operation, payment, { on: 'a connection of its own' })
      await step('another body', operation, payment, { args: { n: args.n + 500 } })
      await step('the same payment again', operation, payment)
    })
    await run(`${operation}, a lost answer, and a new payment`, async ({ offers, pay, step }) => {
      await step('paid', operation, await pay(await offers(operation)), { on: 'a connection of its own' })
      await step('a new payment', operation, await pay(await offers(operation)))
    })
  }
  const bodies: Readonly<Record<string, RawBody | object>> = {
    'is not valid': { n: 0, m: 1 },
    'is not an object': { raw: '[1]' },
    'is no JSON': { raw: '{"n":1' },
    'has a key twice': { raw: '{"n":1,"\\u006e":2}' },
    'is too large': { raw: `{"n":1,"filler":"${'x'.repeat(2_000)}"}` },
    'has another media type': { raw: 'n=1', type: 'application/x-www-form-urlencoded' },
    'is empty': { raw: '' },
  }
  for (const [title, args] of Object.entries(bodies))
    await run(`a body that ${title}`, async ({ offers, pay, step }) => {
      const payment = await pay(await offers('POST note'))
      await step('unpaid', 'POST note', undefined, { args })
      await step('paid', 'POST note', payment, { args })
    })
  await run('a method that a path does not have', async ({ offers, step }) => {
    await offers('POST note')
    await step('unpaid', 'DELETE note', undefined, { args: { raw: '' } })
  })
}
