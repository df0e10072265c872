'use strict';
/* What Node's ali-ons sees of a cluster: node door.js NAME-SERVER ANSWER-FILE, with ali-ons in NODE_PATH. The topic
   door-node is there. */

const fs = require('fs');
const { Producer, Consumer, Message } = require('ali-ons');

const [nameSrv, answer] = process.argv.slice(2);
const quiet = { info() {}, debug() {}, warn() {}, error(error) { console.error(error); } };
if (process.env.TALK) quiet.info = quiet.warn = console.log;
const common = { nameSrv, httpclient: {}, accessKeyId: 'none', accessKeySecret: 'none', clientIP: '127.0.0.1', logger: quiet };
const sleep = ms => new Promise(done => setTimeout(done, ms));

async function until(condition, ms) {
  for (const end = Date.now() + ms; !condition() && Date.now() < end;) await sleep(100);
  await sleep(1000);
}

function consumer(consumerGroup, tags, listener, options = {}) {
  const made = new Consumer({ ...common, consumerGroup, consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET', ...options });
  made.on('error', error => console.error(error));
  made.subscribe('door-node', tags, listener);
  return made;
}

async function main() {
  const seen = { statuses: [], paid: [], failed: [], delayed: [], everything: [] };
  const producer = new Producer({ ...common, producerGroup: 'door-node-shop' });
  await producer.ready();
  async function send(tag, key, level) {
    const message = new Message('door-node', tag, `body of ${key}`);
    message.keys = [ key ];
    if (level) message.delayTimeLevel = level;
    const result = await producer.send(message);
    seen.statuses.push(`${key} ${result.sendStatus}`);
  }
  for (let i = 0; i < 6; i++) await send(i % 2 ? 'paid' : 'shipped', `key-${i}`);
  await send('bad', 'key-bad');
  const all = [
    consumer('door-node-paid', 'paid', async m => { seen.paid.push(`${m.keys} ${m.body}`); }),
    consumer('door-node-bad', 'bad', async m => {
      seen.failed.push(`${m.keys} try ${m.reconsumeTimes}`);
      if (m.reconsumeTimes === 0) throw new Error('not yet');
    }),
    consumer('door-node-late', 'late', async m => {
      seen.delayed.push(`${m.keys} ${Date.now() - sent >= 950 ? 'in time' : 'early'}`);
    }),
    consumer('door-node-all', '*', async m => { seen.everything.push(m.keys); }),
  ];
  let sent = Date.now();
  await Promise.all(all.map(each => each.ready()));
  sent = Date.now(); // before it is sent: on a busy machine its answer may come long after it was stored
  await send('late', 'key-late', 1);
  await until(() => seen.paid.length >= 3 && seen.failed.length >= 2 && seen.delayed.length >= 1 && seen.everything.length >= 8, 90000);
  seen.paid.sort();
  seen.everything.sort();
  fs.writeFileSync(answer, JSON.stringify(seen));
  process.exit(0);
}

main().catch(error => { console.error(error); process.exit(1); });
