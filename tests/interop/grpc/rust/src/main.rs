// RocketMQ's 5.x client for Rust: door ENDPOINTS FILE writes a line for each thing that it saw.
use std::time::Duration;

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::MessageBuilder;
use rocketmq::{Producer, SimpleConsumer};

const TOPIC: &str = "door-normal";

fn server(endpoints: &str) -> ClientOption {
    let mut option = ClientOption::default();
    option.set_access_url(endpoints);
    option.set_enable_tls(false);
    option.set_long_polling_timeout(Duration::from_secs(8));
    option
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut option = ProducerOption::default();
    option.set_topics(vec![TOPIC]);
    let mut producer = Producer::new(option, server(&words[1])).unwrap();
    producer.start().await.unwrap();
    let message = MessageBuilder::builder()
        .set_topic(TOPIC)
        .set_tag("rust")
        .set_keys(vec!["k1"])
        .set_body(b"from rust".to_vec())
        .build()
        .unwrap();
    let receipt = producer.send(message).await.unwrap();

    let mut option = SimpleConsumerOption::default();
    option.set_topics(vec![TOPIC]);
    option.set_consumer_group("door-rust");
    let mut consumer = SimpleConsumer::new(option, server(&words[1])).unwrap();
    consumer.start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut seen = String::new();
    // It asks one queue after another; the message is in one of them.
    for _ in 0..4 {
        let filter = FilterExpression::new(FilterType::Tag, "rust");
        for view in consumer.receive(TOPIC, &filter).await.unwrap() {
            let is_sent = view.message_id() == receipt.message_id();
            let acked = consumer.ack(&view).await;
            seen += &format!(
                "{} {} {:?} attempt {} sent {} acked {}\n",
                String::from_utf8_lossy(view.body()),
                view.tag().unwrap_or(""),
                view.keys(),
                view.delivery_attempt(),
                is_sent,
                acked.is_ok()
            );
        }
        if !seen.is_empty() {
            break;
        }
    }
    std::fs::write(&words[2], seen).unwrap();
    consumer.shutdown().await.unwrap();
    producer.shutdown().await.unwrap();
}
