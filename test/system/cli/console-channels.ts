import t from 'tap'
import { CHANNEL_HANDLERS, handmade, openChannelShop, send } from '../../support/channels.ts'
import { until } from '../../support/until.ts'

t.setTimeout(240_000)

const shop = await openChannelShop({}, ['--handlers', CHANNEL_HANDLERS, '--console=0'])
t.teardown(() => shop.close())

const entrance = new URL([...shop.server.output().matchAll(/console: (http\S+?)"?[,}\s]/g)].at(-1)?.[1] ?? '')
const entered = await fetch(entrance, { redirect: 'manual' })
const Cookie = String(entered.headers.get('set-cookie')).split(';')[0] ?? ''
const view = async (path: string): Promise<string> =>
  (await fetch(new URL(path, entrance.origin), { headers: { Cookie } })).text()

t.test('shows what channels owe, their last claim and withdrawals under way', async (t) => {
  for (const path of ['/', '/health']) t.notMatch(await view(path), /id="channels"/, 'nobody has a channel')
  const channel = await handmade(shop, await shop.wallet())
  t.equal((await send(shop, '/paid/work?n=1', await channel.deposit(1000, 100_000))).status, 200)
  t.equal((await send(shop, '/paid/work?n=2', await channel.voucher(2000))).status, 200)
  for (const path of ['/', '/health']) {
    let html = ''
    await until(`${path} shows it`, async () => {
      html = await view(path)
      return /data-label="Unclaimed">0\.002 USDC</.test(html)
    })
    t.match(html, /data-label="Last claim"><\/td>/)
    t.match(html, /data-state="up">none</)
    t.notMatch(html, /undefined|NaN|\[object/, path)
  }

  await channel.call('initiateWithdraw', 99_000n)
  for (const path of ['/', '/health']) {
    let html = ''
    await until(`${path} shows the withdrawal and the claim`, async () => {
      html = await view(path)
      return /data-label="Unclaimed">0\.00 USDC|data-label="Unclaimed">0 USDC/.test(html)
    })
    t.match(html, /data-state="degraded">1, of 0\.099 USDC</)
    t.match(html, /data-label="Last claim"><time datetime="20/)
    if (path === '/health')
      t.match(html, /data-state="degraded">withdrawing<\/span> 0\.099 USDC, until <time datetime="20/)
  }
})
