// RocketMQ's 5.x client for Go: door ENDPOINTS FILE writes a line for each thing that it saw.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

func main() {
	config := &rmq.Config{Endpoint: os.Args[1], Credentials: &credentials.SessionCredentials{}}
	rmq.EnableSsl = false
	producer, err := rmq.NewProducer(config, rmq.WithTopics("door-normal"))
	if err != nil { panic(err) }
	if err = producer.Start(); err != nil { panic(err) }
	message := &rmq.Message{Topic: "door-normal", Body: []byte("from go")}
	message.SetTag("go")
	receipts, err := producer.Send(context.TODO(), message)
	if err != nil { panic(err) }
	consumer, err := rmq.NewSimpleConsumer(&rmq.Config{Endpoint: os.Args[1], ConsumerGroup: "door-go", Credentials: &credentials.SessionCredentials{}},
		rmq.WithSimpleAwaitDuration(8*time.Second),
		rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{"door-normal": rmq.NewFilterExpression("go")}))
	if err != nil { panic(err) }
	if err = consumer.Start(); err != nil { panic(err) }
	time.Sleep(1500 * time.Millisecond)
	views, err := consumer.Receive(context.TODO(), 16, 20*time.Second)
	seen, _ := os.Create(os.Args[2])
	fmt.Fprintln(seen, len(receipts), len(views), err)
	for _, view := range views {
		fmt.Fprintln(seen, string(view.GetBody()), *view.GetTag(), view.GetDeliveryAttempt(), consumer.Ack(context.TODO(), view))
	}
	seen.Close()
	consumer.GracefulStop()
	producer.GracefulStop()
}
